"""Working with pytest-xdist: what controller and workers tell each other, as many as fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.host.hardware import host_cpus
from pytest_mlebench.machines.link import STOP, answer_questions, tell
from pytest_mlebench.plugin.item_order import ItemOrder
from pytest_mlebench.plugin.results_log import ResultsLog
from pytest_mlebench.plugin.session import ITEM_KEY, MleSession
from pytest_mlebench.plugin.settings import WORKER_KEY, settings_of
from pytest_mlebench.plugin.worker_link import CHANNEL, link_of
from pytest_mlebench.reports.results import ItemKey

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

    from pytest_mlebench.machines.xdist_internals import OneByOne

LOSSES = 3  # of an item whose worker was lost, before it is an error
MODES = ("no", "load", "worksteal")  # of --dist: all are one by one here


class Distribution:
    """The controller's part: schedule items, give workers the settings, take in what they have."""

    def __init__(self, session: MleSession, log: ResultsLog) -> None:
        # late on purpose: only under xdist
        from pytest_mlebench.machines import xdist_internals
        from pytest_mlebench.machines.xdist_contract import require_known_xdist

        self.session = session
        self.log = log
        self._internals = xdist_internals
        self._channels: list[Any] = []  # to the workers, kept: one that nobody holds is closed
        self._losses: Counter[str] = Counter()  # by node id
        self._order: ItemOrder | None = None
        self._elastic: xdist_internals.ElasticSession | None = None
        require_known_xdist()
        _refuse_other_modes(session.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Change what has to be changed of xdist before it starts its workers."""
        dsession = session.config.pluginmanager.getplugin("dsession")
        if dsession is not None:
            self._elastic = self._internals.ElasticSession(dsession, self)
            self._internals.replace_node_manager(None)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Leave xdist as it was."""
        self._internals.restore_node_manager()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        """Give a worker the settings, and a channel beside the one that xdist has."""
        channel = node.gateway.newchannel()
        answer_questions(channel, self.answers(), node)
        node.workerinput[WORKER_KEY] = self.session.settings.to_dict()
        node.workerinput[CHANNEL] = channel
        self._channels.append(channel)

    @pytest.hookimpl
    def pytest_keyboard_interrupt(self) -> None:
        """Let the workers end too: only a terminal tells them by itself."""
        for channel in self._channels:
            tell(channel, STOP)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> OneByOne:
        """Replace the scheduler."""
        return self._internals.OneByOne(config, log, self)

    def predicted_seconds(self, nodeid: str) -> float:
        """Return how long an item may take; the longest is handed out first."""
        if self._order is None:
            self._order = ItemOrder(self.session, self.log.key_of)
        return self._order.predicted_seconds(nodeid)

    def rank(self, nodeid: str, worker: Any) -> int | None:
        """Let any worker run any item."""
        return 0

    def is_lost(self, nodeid: str, worker: Any) -> bool:
        """Count how often an item lost its worker, and give it up in the end."""
        self._losses[nodeid] += 1
        return self._losses[nodeid] >= LOSSES

    def is_done(self, nodeid: str) -> None:
        """Do nothing."""

    def replace(self, worker: Any) -> bool:
        """Start another worker in the place of a lost one, if that makes sense."""
        return self._elastic is not None and self._elastic.clone(worker)

    def answers(self) -> Mapping[str, Callable[..., Any]]:
        """Return what workers may ask for."""
        return {"expect": self._expect}

    def _expect(self, _node: Any, keys: Mapping[str, Any]) -> None:
        """Note what a worker has collected; called before xdist learns that it is ready."""
        where = "a worker's items"
        self.log.expect({node: ItemKey.from_dict(key, where) for node, key in keys.items()})


class WorkerDistribution:
    """The part of a worker: send what it has collected, run one item at a time, obey."""

    def __init__(self, session: MleSession) -> None:
        # late on purpose: only under xdist
        from pytest_mlebench.machines import xdist_internals
        from pytest_mlebench.machines.xdist_contract import require_known_xdist

        self.session = session
        self._internals = xdist_internals
        self._link = link_of(session.config)  # from now on it ends when the controller says so
        require_known_xdist()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Send what identifies the items, before xdist sends their node ids."""
        keys = {item.nodeid: item.stash.get(ITEM_KEY, None) for item in session.items}
        found = {nodeid: key.to_dict() for nodeid, key in keys.items() if key is not None}
        self._link.ask("expect", keys=found)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Finish an item before asking for the next."""
        self._internals.run_items_alone(session.config)


def switch_on(config: pytest.Config) -> None:
    """Let xdist distribute a session to the machines of ``--mle-hosts``."""
    option = config.option
    if hasattr(config, "workerinput") or option.collectonly:
        return
    if not hasattr(option, "tx"):
        raise pytest.UsageError("--mle-hosts needs pytest-xdist: pip install pytest-xdist")
    if option.tx or option.numprocesses:
        raise pytest.UsageError(
            "--mle-hosts says where attempts run, and so do -n and --tx: leave these out"
        )
    if option.dist == "no":
        option.dist = "load"
    option.tx = ["popen"]  # stands for all machines, which are connected in another way


def _refuse_other_modes(config: pytest.Config) -> None:
    mode = config.getoption("dist")
    if mode not in MODES:
        raise pytest.UsageError(
            f"--dist={mode} cannot be honoured with --mle-agent, which hands out attempts one by "
            f"one to whoever is free: leave it out, or use --dist=load"
        )


def workers_that_fit(config: pytest.Config) -> int:
    """Return how many attempts this host can hold at once under the limits, one at least."""
    try:
        session = MleSession(config, settings_of(config))
        return slots_of(session)
    except ConfigError:
        return 1  # the session is about to refuse it in its own words


def slots_of(session: MleSession) -> int:
    """Return how many attempts of a session this host can hold at once, one at least."""
    fits = [_fits(session, competition) for competition in session.settings.ids]
    return max(1, min(fits, default=1))


def _fits(session: MleSession, competition_id: str) -> int:
    # late on purpose: only where the number of workers is asked for
    from pytest_mlebench.host.leases import LeaseClaim, Leasing

    agent = session.agent
    limits = session.limits(session.registry.load(competition_id), agent)
    sandbox = session.sandbox(agent)
    if not isinstance(sandbox, Leasing):
        return int(host_cpus() // limits.cpus)
    return sandbox.capacity(limits).holds(LeaseClaim.of(limits))
