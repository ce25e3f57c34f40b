"""The contract with the inside of pytest-xdist and execnet: what we call, replace and read."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest
import xdist
from execnet.gateway import Gateway
from xdist import dsession as session_module
from xdist import remote, workermanage
from xdist.dsession import DSession
from xdist.scheduler import LoadScheduling
from xdist.workermanage import NodeManager, WorkerController

TESTED = "3.7 to 3.8"  # versions of pytest-xdist

_WORKER = getattr(remote, "WorkerInteractor", None)

# methods that we call or replace, with the names of their parameters after self
_METHODS: dict[str, tuple[object, dict[str, tuple[str, ...]]]] = {
    "LoadScheduling": (
        LoadScheduling,
        {
            "__init__": ("config", "log"),
            "add_node": ("node",),
            "add_node_collection": ("node", "collection"),
            "mark_test_complete": ("node", "item_index", "duration"),
            "remove_node": ("node",),
            "schedule": (),
        },
    ),
    "DSession": (
        DSession,
        {
            "handle_crashitem": ("nodeid", "worker"),
            "report_line": ("line",),
            "triggershutdown": (),
            "worker_errordown": ("node", "error"),
            "worker_internal_error": ("node", "formatted_error"),
            "worker_workerfinished": ("node",),
        },
    ),
    "NodeManager": (
        NodeManager,
        {"setup_nodes": ("putevent",), "setup_node": ("spec", "putevent"), "teardown_nodes": ()},
    ),
    "WorkerController": (
        WorkerController,
        {
            "__init__": ("nodemanager", "gateway", "config", "putevent"),
            "process_from_remote": ("eventcall",),
            "send_runtest_some": ("indices",),
            "setup": (),
            "shutdown": (),
        },
    ),
    "WorkerInteractor": (_WORKER, {"run_one_test": (), "sendevent": ("name", "kwargs")}),
    "Gateway": (Gateway, {"_rinfo": ("update",)}),
}
# what has to be there beside methods
_NAMES: dict[str, tuple[object, tuple[str, ...]]] = {
    "LoadScheduling": (LoadScheduling, ("has_pending", "nodes")),
    "DSession": (DSession, ("session_finished",)),
    "WorkerController": (WorkerController, ("shutting_down",)),
    "WorkerInteractor": (_WORKER, ("handle_command",)),
    "TestQueue": (getattr(remote, "TestQueue", None), ("get", "put")),
    "xdist.dsession": (session_module, ("NodeManager",)),
    "xdist.workermanage": (workermanage, ("Marker",)),
}
# attributes that only objects have: their __init__ sets them
_ATTRIBUTES: dict[str, tuple[type, tuple[str, ...]]] = {
    "DSession": (
        DSession,
        (
            *("_active_nodes", "_failed_nodes_count", "_max_worker_restart", "_summary_report"),
            *("nodemanager", "queue", "sched", "shuttingdown"),
        ),
    ),
    "LoadScheduling": (
        LoadScheduling,
        ("collection", "node2collection", "node2pending", "numnodes", "pending"),
    ),
    "NodeManager": (NodeManager, ("group",)),
    "WorkerController": (WorkerController, ("workerinput",)),
}


def require_known_xdist() -> None:
    """Refuse a version of xdist whose inside is not what we replace."""
    lacking = list(dict.fromkeys((*_lacking_names(), *_lacking_attributes())))
    changed = list(_changed_methods())
    if not lacking and not changed:
        return
    reasons = []
    if lacking:
        reasons.append(f"it has no {', '.join(lacking)}")
    if changed:
        reasons.append(f"it has other parameters of {', '.join(changed)}")
    raise pytest.UsageError(
        f"pytest-xdist {xdist.__version__} is not one that works here ({'; '.join(reasons)}): "
        f"install {TESTED}, or run without -n, --tx and --mle-hosts"
    )


def _lacking_names() -> Iterator[str]:
    for owner, (place, names) in _NAMES.items():
        yield from (f"{owner}.{name}" for name in names if not hasattr(place, name))
    for owner, (place, methods) in _METHODS.items():
        yield from (f"{owner}.{name}" for name in methods if not hasattr(place, name))


def _lacking_attributes() -> Iterator[str]:
    for owner, (place, names) in _ATTRIBUTES.items():
        known = place.__init__.__code__.co_names  # type: ignore[misc]  # of one that exists
        yield from (f"{owner}.{name}" for name in names if name not in known)


def _changed_methods() -> Iterator[str]:
    for owner, (place, methods) in _METHODS.items():
        for name, expected in methods.items():
            method = getattr(place, name, None)
            if method is not None:
                given = tuple(inspect.signature(method).parameters)[1:]
                if given != expected:
                    yield f"{owner}.{name} ({', '.join(given)})"
