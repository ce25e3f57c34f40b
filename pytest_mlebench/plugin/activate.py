"""Turn the plugin on: check the options, and register what an active session consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_mlebench._problems import Problems
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.plugin.checks import examine
from pytest_mlebench.plugin.collection import Collection
from pytest_mlebench.plugin.finished import Finished
from pytest_mlebench.plugin.interrupts import Interrupts
from pytest_mlebench.plugin.results_log import ResultsLog
from pytest_mlebench.plugin.session import SESSION, MleSession
from pytest_mlebench.plugin.terminal import Terminal
from pytest_mlebench.plugin.verdicts import Verdicts
from pytest_mlebench.plugin.way_out import explain, session_of

if TYPE_CHECKING:
    from pytest_mlebench.machines.hosts_file import Machines


def activate(config: pytest.Config) -> None:
    """Check the options and register the parts."""
    try:
        _activate(config)
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None


def _activate(config: pytest.Config) -> None:
    session = _checked(config)
    config.stash[SESSION] = session
    manager = config.pluginmanager
    manager.register(Interrupts(), "mlebench-interrupts")
    manager.register(Collection(session), "mlebench-collection")
    manager.register(Verdicts(session), "mlebench-verdicts")
    log = None if session.is_worker else ResultsLog(session)
    if log is not None:
        manager.register(log, "mlebench-results")
        manager.register(Terminal(session, log), "mlebench-terminal")
        manager.register(Finished(session, log), "mlebench-finished")
    for name, part in _distribution(session, log).items():
        manager.register(part, f"mlebench-{name}")


def _distribution(session: MleSession, log: ResultsLog | None) -> dict[str, object]:
    """Return this process' parts in a session that has workers, by their names."""
    option = session.config.option
    if not session.is_worker and (getattr(option, "dist", "no") == "no" or not option.tx):
        return {}
    # late on purpose: only under xdist
    from pytest_mlebench.plugin.distribution import Distribution, WorkerDistribution

    if log is not None and (machines := _machines(session)) is not None:
        from pytest_mlebench.plugin.fleet import Fleet

        return {"distribution": Fleet(session, log, machines)}
    if log is not None:
        return {"distribution": Distribution(session, log)}
    parts: dict[str, object] = {"distribution": WorkerDistribution(session)}
    if session.posting is not None:
        from pytest_mlebench.plugin.host_worker import HostWorker

        parts["host-worker"] = HostWorker(session, session.posting)
    return parts


def _machines(session: MleSession) -> Machines | None:
    """Return the other machines of a session: of its file, or those that ``--tx`` names by ssh.

    A conftest's agent and tests of the user's own cannot travel: these are left to xdist itself.
    """
    # late on purpose: only under xdist
    from pytest_mlebench.machines.hosts_file import read_hosts
    from pytest_mlebench.machines.tx_specs import machines_of

    settings, option = session.settings, session.config.option
    if settings.hosts is not None:
        return read_hosts(settings.hosts)
    if session.agent_is_overridden or settings.tests:
        return None
    machines = machines_of(option.tx)
    if machines is not None:
        session.has_hosts = True
        option.tx = ["popen"]  # stands for all machines, which are connected in another way
    return machines


def _checked(config: pytest.Config) -> MleSession:
    """Return the session, or refuse all that is wrong: with the options, and then with this host.

    Where nothing is wrong with the options the host is looked at when the session starts.
    """
    problems = Problems()
    session = session_of(config, problems)
    if problems:
        if session.settings.ids and not config.option.collectonly:
            examine(session, problems)
        raise ConfigError(explain(config, problems))
    return session
