"""What is private to pytest-xdist and replaced by us, all of it in one place.

- A worker gets an item only when it has none, the longest first: xdist's schedulers hand out the
  next item before the current one has begun, which pins day-long items to busy workers.
- A worker that is lost gives its item back, whatever ended it; its exit status 2 is not the user's
  Ctrl-C, and an internal error of one worker does not end the session of all.
- A worker that never came to work is replaced once, and then no more.
- Workers on other machines come and go (``Membership`` decides); the session is over when all items
  are, or when nobody is left who could run them.

A version of xdist in which something of this is not as expected is refused before anything runs.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import execnet
import pytest
from xdist import dsession as session_module
from xdist import workermanage
from xdist.dsession import DSession
from xdist.report import report_collection_diff
from xdist.scheduler import LoadScheduling
from xdist.workermanage import NodeManager, WorkerController

EARLY_DEATHS = 2  # of a worker that has not collected yet: it is not going to
ENDED_WELL = (0, 1, 5)  # statuses of a worker's session: passed, failed, nothing collected
UNREACHABLE = (execnet.HostNotFound, EOFError, OSError)


class Policy(Protocol):
    """What a session decides about its items and workers."""

    def predicted_seconds(self, nodeid: str) -> float:
        """Return how long an item may take; the longest is handed out first."""

    def rank(self, nodeid: str, worker: Any) -> int | None:
        """Return how much a worker should run an item, the lowest first; None: it must not."""

    def is_lost(self, nodeid: str, worker: Any) -> bool:
        """Take note that a worker was lost with an item; tell whether the item is given up."""

    def is_done(self, nodeid: str) -> None:
        """Take note that an item has been run."""

    def replace(self, worker: Any) -> bool:
        """Bring another worker in a lost one's place, now or later; tell whether one may come."""


class OneByOne(LoadScheduling):  # type: ignore[misc]  # xdist has no types for mypy
    """Hand out items one by one, the longest first, to whoever is there."""

    collection: list[str] | None
    pending: list[int]

    def __init__(self, config: pytest.Config, log: Any, policy: Policy) -> None:
        super().__init__(config, log)
        self.numnodes = 1  # begin with the first worker that is ready; others join
        self._policy = policy

    @property
    def tests_finished(self) -> bool:
        """Tell whether every item has been run, or given up."""
        return self.collection is not None and not self.has_pending

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Take a worker in, unless it has collected other items than the first one."""
        first = next(iter(self.node2collection), None)
        if first is not None and list(collection) != (known := self.node2collection[first]):
            difference = report_collection_diff(
                known, collection, first.gateway.id, node.gateway.id
            )
            report = pytest.CollectReport(node.gateway.id, "failed", difference, result=[])
            self.config.hook.pytest_collectreport(report=report)
            node.shutdown()
            return
        self.node2collection[node] = list(collection)

    def schedule(self) -> None:
        """Give every worker that is ready an item."""
        if self.collection is None:
            self.collection = next(iter(self.node2collection.values()))
            seconds = [self._policy.predicted_seconds(nodeid) for nodeid in self.collection]
            self.pending[:] = sorted(range(len(seconds)), key=lambda index: -seconds[index])
        while best := self._best():
            self._hand_out(*best)

    def check_schedule(self, node: Any, duration: float = 0) -> None:
        """Give a worker an item if it has none; without one it waits: another may be lost."""
        if self._is_free(node) and (ranked := self._ranked(node)):
            self._hand_out(node, self.pending[min(ranked)[1]])

    def _is_free(self, node: Any) -> bool:
        has_come = node in self.node2collection and not node.shutting_down
        return has_come and not self.node2pending[node]

    def _hand_out(self, node: Any, index: int) -> None:
        self.pending.remove(index)
        self.node2pending[node].append(index)
        with contextlib.suppress(OSError):  # it is gone: its end, an event, gives the item back
            node.send_runtest_some([index])

    def give_back(self, nodeid: str) -> None:
        """Put an item to the front of the queue."""
        if self.collection is not None:
            self.pending.insert(0, self.collection.index(nodeid))
            self.schedule()

    def drop(self, nodeid: str) -> None:
        """Take an item out of the queue."""
        if self.collection is not None and (index := self.collection.index(nodeid)) in self.pending:
            self.pending.remove(index)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Take note that a worker is through with an item, and give it the next."""
        if self.collection is not None:
            self._policy.is_done(self.collection[item_index])
        super().mark_test_complete(node, item_index, duration)

    def waiting(self) -> list[str]:
        """Return the items that nobody has."""
        return [] if self.collection is None else [self.collection[each] for each in self.pending]

    def is_idle(self, node: Any) -> bool:
        """Tell whether a worker is ready and has no item."""
        return node in self.node2collection and not self.node2pending.get(node)

    def item_of(self, node: Any) -> str | None:
        """Return the item that a worker has, if it has one."""
        held = self.node2pending.get(node)
        return self.collection[held[0]] if held and self.collection is not None else None

    def _best(self) -> tuple[Any, int] | None:
        """Return a free worker and the item that suits it, of all the pair that suits best."""
        ranked = [
            (*each, number)
            for number, node in enumerate(self.nodes)
            if self._is_free(node)
            for each in self._ranked(node)
        ]
        if not ranked:
            return None
        _, place, number = min(ranked)
        return self.nodes[number], self.pending[place]

    def _ranked(self, node: Any) -> list[tuple[int, int]]:
        """Return the items that a worker may run: how much they suit it, and their places."""
        items = self.collection or []
        ranks = ((self._policy.rank(items[i], node), place) for place, i in enumerate(self.pending))
        return [(rank, place) for rank, place in ranks if rank is not None]


class ElasticSession:
    """The controller's side of xdist, so changed that workers may be lost and come back."""

    def __init__(self, dsession: DSession, policy: Policy) -> None:
        self._session = dsession
        self._policy = policy
        self._usual_finish = dsession.worker_workerfinished
        self._usual_crash = dsession.handle_crashitem
        dsession.worker_workerfinished = self.finished
        dsession.worker_errordown = self.lost
        dsession.worker_internal_error = self.internal_error
        dsession.handle_crashitem = self.crashed
        dsession.worker_mle_event = self.event

    def event(self, happened: Callable[[], None]) -> None:
        """Let something of ours happen in the session's own thread."""
        happened()

    def call_soon(self, happened: Callable[[], None]) -> None:
        """Ask, from any thread, for something to happen in the session's own."""
        self._session.queue.put(("mle_event", {"happened": happened}))

    @property
    def scheduler(self) -> OneByOne:
        """Return the scheduler, which is there once the session hands out items."""
        scheduler: OneByOne = self._session.sched
        return scheduler

    @property
    def is_ending(self) -> bool:
        """Tell whether the workers have been told to end."""
        return bool(self._session.shuttingdown)

    def hand_out(self) -> None:
        """Give items to workers that wait, if the session is that far."""
        if self._session.sched is not None and self.scheduler.collection is not None:
            self.scheduler.schedule()

    def end(self) -> None:
        """Let the session end with what has been run."""
        self._session.triggershutdown()

    def await_member(self, member: object, *, come: bool = False) -> None:
        """Keep the session going for the sake of somebody who may come, or has."""
        active = self._session._active_nodes
        active.discard(member) if come else active.add(member)

    def workers(self) -> list[Any]:
        """Return the workers that are connected."""
        return [one for one in self._session._active_nodes if isinstance(one, WorkerController)]

    def finished(self, node: Any) -> None:
        """Take a worker's leave; one that was interrupted, or failed itself, is a lost one."""
        status = node.workeroutput["exitstatus"]
        holds = bool(self.scheduler.node2pending.get(node))
        if status in ENDED_WELL and not holds:
            self._usual_finish(node)
            if getattr(node, "mle_is_spent", False) and not self.is_ending:
                self._policy.replace(node)
        elif self.is_ending and not holds:
            self._session.config.hook.pytest_testnodedown(node=node, error=None)
            self.scheduler.node2pending.pop(node, None)
            self._session._active_nodes.discard(node)
        else:
            self.lost(node, f"its session ended with status {status}")

    def internal_error(self, node: Any, formatted_error: str) -> None:
        """Show what went wrong in a worker; its end follows as an event of its own."""
        self._session.report_line(f"\ninternal error of worker {node.gateway.id}:")
        self._session.report_line(formatted_error)

    def lost(self, node: Any, error: object) -> None:
        """Give back what a lost worker had, and see to another in its place."""
        session = self._session
        session.config.hook.pytest_testnodedown(node=node, error=error)
        nodeid = self.scheduler.remove_node(node) if node in self.scheduler.nodes else None
        session._active_nodes.discard(node)
        comes = self._policy.replace(node)
        if nodeid is not None:
            self.crashed(nodeid, node)
        if not comes and not session._active_nodes:
            session.triggershutdown()

    def crashed(self, nodeid: str, node: Any) -> None:
        """Put an item back into the queue; one that was lost too often is an error."""
        if self._policy.is_lost(nodeid, node):
            self._usual_crash(nodeid, node)
        else:
            self.scheduler.give_back(nodeid)

    def give_up(self, nodeid: str, node: Any) -> None:
        """Report an item in the queue as one that was lost too often."""
        self.scheduler.drop(nodeid)
        self._usual_crash(nodeid, node)

    def clone(self, node: Any) -> bool:
        """Start another worker like one that is lost; tell whether it was worth it."""
        session = self._session
        started = node in self.scheduler.node2collection
        deaths = 0 if started else getattr(node, "mle_early_deaths", 0) + 1
        session._failed_nodes_count += 1
        most = session._max_worker_restart
        if deaths >= EARLY_DEATHS or (most is not None and session._failed_nodes_count > most):
            text = f"worker {node.gateway.id} is given up: it was lost too often"
            session.report_line(f"\n{text}")
            session._summary_report = text
            return False
        session.report_line(f"\nreplacing lost worker {node.gateway.id}")
        spec = node.gateway.spec
        spec.id = None
        session.nodemanager.group.allocate_id(spec)
        try:
            new = session.nodemanager.setup_node(spec, session.queue.put)
        except UNREACHABLE as problem:
            session.report_line(f"worker {node.gateway.id} is given up: {_words(problem)}")
            return False
        new.mle_early_deaths = deaths
        session._active_nodes.add(new)
        return True


class MachineWorker(WorkerController):  # type: ignore[misc]  # xdist has no types for mypy
    """A worker on another machine, which is told what it needs and nothing of this one's paths."""

    def __init__(
        self, manager: NodeManager, gateway: Any, putevent: Any, machine: str, arguments: list[str]
    ) -> None:
        super().__init__(manager, gateway, manager.config, putevent)
        self.machine = machine
        self._arguments = arguments
        gateway.node = self  # keeps it alive

    def setup(self) -> None:
        """Start the worker's session."""
        self.config.hook.pytest_configure_node(node=self)
        module = self.config.hook.pytest_xdist_getremotemodule()
        self.channel = self.gateway.remote_exec(module)
        self.channel.send((self.workerinput, self._arguments, {}, None))
        self.channel.setcallback(self.process_from_remote, endmarker=workermanage.Marker.END)


def connect(manager: NodeManager, spec: str) -> Any:
    """Return a connection to whoever starts by a spec, once the other side has answered."""
    gateway = manager.group.makegateway(execnet.XSpec(spec))
    gateway._rinfo()  # asks the other side, once
    return gateway


def replace_node_manager(begin: Callable[[NodeManager, Any], list[Any]] | None) -> None:
    """Let the session about to start connect to workers by *begin*, or as usual but with words."""

    class Manager(NodeManager):  # type: ignore[misc]  # xdist has no types for mypy
        """Connect to workers, or say in a sentence why that is not possible."""

        def setup_nodes(self, putevent: Any) -> list[Any]:
            if begin is not None:
                return begin(self, putevent)
            try:
                nodes: list[Any] = super().setup_nodes(putevent)
            except UNREACHABLE as problem:
                self.teardown_nodes()
                raise pytest.UsageError(f"--tx: cannot start a worker: {_words(problem)}") from None
            return nodes

    session_module.NodeManager = Manager


def restore_node_manager() -> None:
    """Leave xdist as it was."""
    session_module.NodeManager = NodeManager


def run_items_alone(config: pytest.Config) -> None:
    """Let this worker finish its item before it asks for the next."""
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            plugin.run_one_test = partial(_run_alone, plugin)


def _run_alone(worker: Any) -> None:
    """Run the worker's item to its end, then wait for the next one."""
    worker.item_index = worker.nextitem_index
    item = worker.session.items[worker.item_index]
    start = time.perf_counter()
    worker.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    worker.sendevent(
        "runtest_protocol_complete",
        item_index=worker.item_index,
        duration=time.perf_counter() - start,
    )
    worker.nextitem_index = worker.torun.get()


def _words(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
