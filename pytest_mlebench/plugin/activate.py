"""Turn the plugin on: check the options, and register what an active session consists of."""

from __future__ import annotations

import pytest

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.plugin.collection import Collection
from pytest_mlebench.plugin.interrupts import Interrupts
from pytest_mlebench.plugin.results_log import ResultsLog
from pytest_mlebench.plugin.session import SESSION, MleSession
from pytest_mlebench.plugin.settings import settings_of
from pytest_mlebench.plugin.terminal import Terminal
from pytest_mlebench.plugin.verdicts import Verdicts


def activate(config: pytest.Config) -> None:
    """Check the options and register the parts."""
    try:
        session = MleSession(config, settings_of(config))
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[SESSION] = session
    manager = config.pluginmanager
    manager.register(Interrupts(), "mlebench-interrupts")
    manager.register(Collection(session), "mlebench-collection")
    manager.register(Verdicts(session), "mlebench-verdicts")
    log = None if session.is_worker else ResultsLog(session)
    if log is not None:
        manager.register(log, "mlebench-results")
        manager.register(Terminal(session, log), "mlebench-terminal")
    if hasattr(config.option, "dist"):  # xdist is there, however it was loaded
        from pytest_mlebench.plugin.distribution import Distribution  # late on purpose: with xdist

        manager.register(Distribution(session, log), "mlebench-distribution")
