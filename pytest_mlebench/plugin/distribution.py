"""Working with pytest-xdist: what controller and workers tell each other, as many as fit."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.limits import host_cpus
from pytest_mlebench.plugin.results_log import ResultsLog
from pytest_mlebench.plugin.scheduler import make_scheduler, require_known_xdist, run_items_alone
from pytest_mlebench.plugin.session import ITEM_KEY, MleSession
from pytest_mlebench.plugin.settings import WORKER_KEY, settings_of
from pytest_mlebench.reports.results import ItemKey

if TYPE_CHECKING:
    from xdist.scheduler import LoadScheduling
    from xdist.workermanage import WorkerController

CHANNEL = "mle_channel"  # in what a worker is given: a way beside the one for xdist's own events
STOP = "stop"


class Distribution:
    """Schedule items one by one, give workers the settings, take in what they collect."""

    def __init__(self, session: MleSession, log: ResultsLog | None) -> None:
        self.session = session
        self.log = log  # none in a worker
        self._channels: list[Any] = []  # to the workers
        if session.is_worker or getattr(session.config.option, "tx", None):
            require_known_xdist()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        """Give a worker the settings, and a channel beside the one that xdist has."""
        channel = node.gateway.newchannel()
        channel.setcallback(self._receive)
        node.workerinput[WORKER_KEY] = self.session.settings.to_dict()
        node.workerinput[CHANNEL] = channel
        self._channels.append(channel)

    @pytest.hookimpl
    def pytest_keyboard_interrupt(self) -> None:
        """Let the workers end too: only a terminal tells them by itself."""
        for channel in self._channels:
            with contextlib.suppress(OSError):  # it has ended already
                channel.send(STOP)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """In a worker: end when the controller says so."""
        if self.session.is_worker:
            channel = session.config.workerinput[CHANNEL]  # type: ignore[attr-defined]  # of xdist
            channel.setcallback(_obey)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> LoadScheduling | None:
        """Replace the default scheduler; one that was asked for by ``--dist`` stays."""
        if config.getoption("dist") not in ("load", "worksteal"):
            return None
        return make_scheduler(config, log)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """In a worker: send what identifies the items, before xdist sends their node ids."""
        if not self.session.is_worker:
            return
        keys = {item.nodeid: item.stash.get(ITEM_KEY, None) for item in session.items}
        found = {nodeid: key.to_dict() for nodeid, key in keys.items() if key is not None}
        session.config.workerinput[CHANNEL].send(found)  # type: ignore[attr-defined]  # of xdist

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """In a worker: finish an item before asking for the next."""
        if self.session.is_worker:
            run_items_alone(session.config)

    def _receive(self, keys: Mapping[str, Any]) -> None:
        """Note what a worker has collected; called before xdist learns that it is ready."""
        if self.log is not None:
            where = "a worker's items"
            self.log.expect({node: ItemKey.from_dict(key, where) for node, key in keys.items()})


def _obey(message: str) -> None:
    """Interrupt this worker, as Ctrl-C at a terminal would."""
    if message == STOP:
        os.kill(os.getpid(), signal.SIGINT)


def workers_that_fit(config: pytest.Config) -> int:
    """Return how many attempts this host can hold at once under the limits, one at least."""
    try:
        session = MleSession(config, settings_of(config))
        fits = [_fits(session, competition) for competition in session.settings.ids]
    except ConfigError:
        return 1  # the session is about to refuse it in its own words
    return max(1, min(fits, default=1))


def _fits(session: MleSession, competition_id: str) -> int:
    # late on purpose: only where the number of workers is asked for
    from pytest_mlebench.host.leases import Claim, Leasing

    agent = session.agent
    limits = session.limits(session.registry.load(competition_id), agent)
    sandbox = session.sandbox(agent)
    if not isinstance(sandbox, Leasing):
        return int(host_cpus() // limits.cpus)
    return sandbox.capacity(limits).holds(Claim.of(limits))
