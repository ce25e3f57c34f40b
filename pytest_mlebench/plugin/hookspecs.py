"""The hooks that a plugin or a ``conftest.py`` may implement."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_mlebench.agent import Agent
    from pytest_mlebench.attempts.record import Run
    from pytest_mlebench.grade import Grade
    from pytest_mlebench.limits import Limits
    from pytest_mlebench.sandbox import Job, Sandbox


@pytest.hookspec
def pytest_mle_competitions(config: pytest.Config) -> Sequence[Path]:  # type: ignore[empty-body]
    """Return folders with competitions of your own."""


@pytest.hookspec(firstresult=True)
def pytest_mle_agent(config: pytest.Config, name: str) -> Agent | None:
    """Return the agent that ``--mle-agent=NAME`` stands for, or None to let others decide."""


@pytest.hookspec(firstresult=True)
def pytest_mle_sandbox(config: pytest.Config, name: str, agent: Agent) -> Sandbox | None:
    """Return the sandbox for an agent, or None; *name* is docker, rootless or process."""


@pytest.hookspec(firstresult=True)
def pytest_mle_limits(config: pytest.Config, competition: str, limits: Limits) -> Limits | None:
    """Return other limits for a competition, or None; deviations are disclosed all the same."""


@pytest.hookspec
def pytest_mle_before_run(config: pytest.Config, job: Job, run: Run) -> None:
    """Do something before an agent starts."""


@pytest.hookspec
def pytest_mle_after_run(
    config: pytest.Config, job: Job, run: Run, extra: MutableMapping[str, Any]
) -> None:
    """Do something after an agent has ended and what it left has been collected; what is put into
    *extra*, in JSON types, becomes part of the attempt's record."""


@pytest.hookspec
def pytest_mle_graded(config: pytest.Config, run: Run, grade: Grade) -> None:
    """Do something with a grade that has just been made."""


@pytest.hookspec
def pytest_mle_report(config: pytest.Config) -> Mapping[str, Any]:  # type: ignore[empty-body]
    """Return facts of your own for the disclosure of the report."""
