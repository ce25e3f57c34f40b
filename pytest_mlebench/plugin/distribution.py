"""Working with pytest-xdist: one attempt at a time for each worker, as many as the host holds.

The schedulers that come with xdist hand a worker its next item before it has begun the current
one, which pins day-long items to busy workers while others idle.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.limits import host_cpus
from pytest_mlebench.plugin.session import MleSession, from_options

if TYPE_CHECKING:
    from xdist.scheduler import LoadScheduling
    from xdist.workermanage import WorkerController


class Distribution:
    """Schedule items one by one and give workers the run's folder."""

    def __init__(self, session: MleSession) -> None:
        self.session = session

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        """Tell a worker which run it works for."""
        node.workerinput["mle_run_folder"] = str(self.session.run_folder)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> LoadScheduling | None:
        """Replace the default scheduler; one that was asked for by ``--dist`` stays."""
        if config.getoption("dist") not in ("load", "worksteal"):
            return None
        return make_scheduler(config, log)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Let a worker finish its item before it asks for the next."""
        if self.session.is_worker:
            for plugin in session.config.pluginmanager.get_plugins():
                if type(plugin).__name__ == "WorkerInteractor":
                    plugin.run_one_test = partial(_run_alone, plugin)


def workers_that_fit(config: pytest.Config) -> int:
    """Return how many attempts this host can hold at once under the limits, one at least."""
    try:
        session = from_options(config)
        fits = [_fits(session, competition) for competition in session.ids]
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


def make_scheduler(config: pytest.Config, log: Any) -> LoadScheduling:
    """Return a scheduler that gives a worker an item only when it has none."""
    from xdist.scheduler import LoadScheduling  # late on purpose: only under xdist

    class OneByOne(LoadScheduling):  # type: ignore[misc]  # xdist may not be installed
        """Hand out items one by one."""

        collection: list[str] | None

        @property
        def tests_finished(self) -> bool:
            return self.collection_is_completed and not self.has_pending

        def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
            if node.shutting_down or self.node2pending[node]:
                return
            if self.pending:
                self._send_tests(node, 1)
            else:
                node.shutdown()

        def schedule(self) -> None:
            if self.collection is None:
                if not self._check_nodes_have_same_collection():
                    return
                self.collection = next(iter(self.node2collection.values()))
                self.pending[:] = range(len(self.collection))
            for node in self.nodes:
                self.check_schedule(node)

    return OneByOne(config, log)


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
