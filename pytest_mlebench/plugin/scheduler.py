"""One item at a time for each worker of pytest-xdist.

The schedulers that come with xdist hand a worker its next item before it has begun the current
one, which pins day-long items to busy workers while others idle. What is replaced is private to
xdist; a version in which it is not as expected is refused before anything runs.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScheduling
    from xdist.workermanage import WorkerController

TESTED = "3.6 to 3.8"  # versions of pytest-xdist

# what we rely on, beside the documented hooks (xdist/scheduler/load.py, xdist/remote.py)
_SCHEDULER = ("_send_tests", "_check_nodes_have_same_collection", "has_pending", "nodes")
_WORKER = ("run_one_test", "sendevent")
_QUEUE = ("get", "put")


def require_known_xdist() -> None:
    """Refuse a version of xdist whose inside is not what we replace."""
    import xdist  # late on purpose: only under xdist
    from xdist import remote
    from xdist.scheduler import LoadScheduling

    lacking = [name for name in _SCHEDULER if not hasattr(LoadScheduling, name)]
    worker = getattr(remote, "WorkerInteractor", None)
    lacking += [name for name in _WORKER if not hasattr(worker, name)]
    queue = getattr(remote, "TestQueue", None)
    lacking += [f"TestQueue.{name}" for name in _QUEUE if not hasattr(queue, name)]
    if lacking:
        raise pytest.UsageError(
            f"pytest-xdist {xdist.__version__} is not one that works here (it has no "
            f"{', '.join(lacking)}): install {TESTED}, or run without -n"
        )


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
