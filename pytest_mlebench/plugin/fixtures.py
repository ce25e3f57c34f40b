"""The fixtures, all to be overridden in a ``conftest.py`` as one likes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_mlebench.agent import Agent
    from pytest_mlebench.attempts.record import Run
    from pytest_mlebench.competition import Competition
    from pytest_mlebench.dataset import Dataset
    from pytest_mlebench.grade import Grade
    from pytest_mlebench.limits import Limits
    from pytest_mlebench.plugin.session import MleSession
    from pytest_mlebench.sandbox import Sandbox


@pytest.fixture
def mle_competition(request: pytest.FixtureRequest) -> Competition:
    """The competition of this item, a ``pytest_mlebench.Competition``: id, title, thresholds,
    metric. Tests that take it, or any fixture that builds on it, become one item for each
    competition and seed that ``@pytest.mark.mle(...)`` or the options select."""
    return _session(request).registry.load(request.param)


@pytest.fixture
def mle_seed(request: pytest.FixtureRequest) -> int:
    """The seed of this item, from 0; the agent finds it in ``MLE_SEED``."""
    seed: int = request.param
    return seed


@pytest.fixture
def mle_dataset(request: pytest.FixtureRequest, mle_competition: Competition) -> Dataset:
    """The prepared data of the competition, downloaded, verified and prepared if need be:
    ``public`` is what the agent sees, ``private`` holds the answers."""
    return _session(request).dataset(mle_competition)


@pytest.fixture
def mle_agent(request: pytest.FixtureRequest) -> Agent:
    """The agent under test, as ``--mle-agent`` names it. Override it to test an agent that is
    made in Python: ``return pytest_mlebench.Agent(name="mine", function=solve)``."""
    return _session(request).agent


@pytest.fixture
def mle_limits(
    request: pytest.FixtureRequest, mle_competition: Competition, mle_agent: Agent
) -> Limits:
    """The limits of this attempt: the standard ones (or the demo split's), changed by the
    agent's wishes, the marker and the options, in this order."""
    return _session(request).limits(mle_competition, mle_agent, request.node)


@pytest.fixture
def mle_sandbox(request: pytest.FixtureRequest, mle_agent: Agent) -> Sandbox:
    """The place where the agent runs, as ``--mle-sandbox`` says."""
    return _session(request).sandbox(mle_agent)


@pytest.fixture
def mle_run(
    request: pytest.FixtureRequest,
    mle_dataset: Dataset,
    mle_seed: int,
    mle_agent: Agent,
    mle_limits: Limits,
    mle_sandbox: Sandbox,
) -> Run:
    """The agent's run on this competition with this seed: its folder, log, submission and
    ending. An attempt that has been made already, in this session or the one that is resumed, by
    the same agent and under the same conditions, is not repeated."""
    session = _session(request)
    return session.run(request.node, mle_dataset, mle_seed, mle_agent, mle_limits, mle_sandbox)


@pytest.fixture
def mle_grade(request: pytest.FixtureRequest, mle_run: Run, mle_dataset: Dataset) -> Grade:
    """The grade of what the agent handed in: score, medal, percentile, thresholds. What cannot
    be graded has ``valid == False`` and says why in ``problem``."""
    return _session(request).grade(mle_run, mle_dataset, request.node)


def _session(request: pytest.FixtureRequest) -> MleSession:
    from pytest_mlebench.plugin.session import current  # late on purpose: only with our tests

    session = current(request.config)
    if session is None:
        pytest.skip("needs an agent under test: give --mle-agent=NAME")
    return session
