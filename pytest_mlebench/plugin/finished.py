"""Items whose attempt an earlier session has finished: they get their values without fixtures.

pytest sets up eight fixtures for each of them, which is most of what a resumed run of thousands of
attempts costs. Whatever a conftest overrides, what another plugin may skip while it is set up, and
what was not finished, goes the usual way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_mlebench.attempts.record import Run
from pytest_mlebench.plugin.results_log import ResultsLog
from pytest_mlebench.plugin.session import FIXTURES, ITEM_KEY, MleSession
from pytest_mlebench.plugin.suite import NODE

_OWN_AND_PYTESTS = ("_pytest.", "pytest_mlebench.")  # modules that skip nothing at this moment


class Finished:
    """Hand the items of the built-in suite what their fixtures would return."""

    def __init__(self, session: MleSession, log: ResultsLog) -> None:
        self._session = session
        self._log = log

    @pytest.hookimpl  # after markers that skip, before pytest asks for what is not there yet
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Fill in the arguments of an item that is done already."""
        key = item.stash.get(ITEM_KEY, None)
        if self._log.run is None or key is None:
            return
        known = self._log.run.done.get(key)
        if known is not None and isinstance(item, pytest.Function) and _is_plain(item):
            self._fill_in(item, known)

    def _fill_in(self, item: pytest.Function, known: Run) -> None:
        session = self._session
        parameters: Mapping[str, Any] = item.callspec.params
        seed = parameters["mle_seed"]
        competition = session.registry.load(parameters["mle_competition"])
        dataset, agent = session.dataset(competition), session.agent
        limits, sandbox = session.limits(competition, agent, item), session.sandbox(agent)
        run = session.run(item, dataset, seed, agent, limits, sandbox, known=known)
        item.funcargs |= {
            "request": item._request,
            "mle_competition": competition,
            "mle_seed": seed,
            "mle_dataset": dataset,
            "mle_agent": agent,
            "mle_limits": limits,
            "mle_sandbox": sandbox,
            "mle_run": run,
            "mle_grade": session.grade(run, dataset, item),
        }


def _is_plain(item: pytest.Function) -> bool:
    """Tell whether an item is one of the suite whose fixtures are all ours, and are not shown."""
    if not item.nodeid.startswith(f"{NODE}::") or item.config.getoption("setupshow", False):
        return False
    setting_up = item.ihook.pytest_runtest_setup.get_hookimpls()
    if not all(each.function.__module__.startswith(_OWN_AND_PYTESTS) for each in setting_up):
        return False
    known = item._fixtureinfo.name2fixturedefs
    ours = (found for name, found in known.items() if name.startswith("mle_"))
    return all(len(found) == 1 and found[0].func.__module__ == FIXTURES for found in ours)
