"""The contract with the inside of pytest-xdist, held against the version that is installed."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
import xdist
from xdist import dsession, remote
from xdist.scheduler import LoadScheduling

from pytest_mlebench.machines import xdist_contract
from pytest_mlebench.machines.xdist_internals import OneByOne


class Worker:
    """A worker as the scheduler sees it."""

    def __init__(self, name: str, *, gone: bool = False) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.gone = gone
        self.given: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        if self.gone:
            raise OSError("cannot send")
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True


class Rules:
    """A policy: items take as long as their names are, and belong to anybody."""

    def __init__(self, owners: dict[str, str] | None = None) -> None:
        self.owners = owners or {}

    def predicted_seconds(self, nodeid: str) -> float:
        return len(nodeid)

    def rank(self, nodeid: str, worker: Any) -> int | None:
        owner = self.owners.get(nodeid)
        return 1 if owner is None else (0 if owner == worker.gateway.id else None)

    def is_lost(self, nodeid: str, worker: Any) -> bool:
        return False

    def is_done(self, nodeid: str) -> None:
        pass

    def replace(self, worker: Any) -> bool:
        return False


@pytest.fixture
def scheduler(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> OneByOne:
    monkeypatch.setattr(pytestconfig.option, "tx", ["popen", "popen"])
    return OneByOne(pytestconfig, None, Rules())


def join(scheduler: OneByOne, name: str, items: list[str], **how: bool) -> Worker:
    worker = Worker(name, **how)
    scheduler.add_node(worker)
    scheduler.add_node_collection(worker, items)
    scheduler.schedule()
    return worker


def test_the_installed_version_has_all_that_is_replaced() -> None:
    xdist_contract.require_known_xdist()


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (dsession.DSession, "worker_workerfinished"),
        (LoadScheduling, "remove_node"),
        (remote.WorkerInteractor, "run_one_test"),
    ],
)
def test_a_version_that_lacks_something_is_refused_by_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, place: type, name: str
) -> None:
    monkeypatch.delattr(place, name)
    words = re.escape(f"pytest-xdist {xdist.__version__} is not one that works here (it has no ")
    with pytest.raises(pytest.UsageError, match=rf"{words}\w+\.{name}\): install 3.7 to 3.8"):
        xdist_contract.require_known_xdist()


def test_a_version_whose_objects_lack_an_attribute_is_refused_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def begin(self: object, config: object) -> None:
        """Set nothing."""

    monkeypatch.setattr(dsession.DSession, "__init__", begin)
    with pytest.raises(pytest.UsageError, match=r"it has no DSession\._active_nodes, "):
        xdist_contract.require_known_xdist()


def test_a_version_with_other_parameters_is_refused_by_what_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lose(self: object, node: object, why: str, error: object) -> None:
        """Take one more."""

    monkeypatch.setattr(dsession.DSession, "worker_errordown", lose)
    words = r"it has other parameters of DSession\.worker_errordown \(node, why, error\)"
    with pytest.raises(pytest.UsageError, match=words):
        xdist_contract.require_known_xdist()


def test_the_longest_item_is_handed_out_first_and_one_at_a_time(scheduler: OneByOne) -> None:
    worker = join(scheduler, "a", ["x", "xxx", "xx"])
    assert worker.given == [1]
    scheduler.mark_test_complete(worker, 1)
    assert worker.given == [1, 2]


def test_work_begins_with_the_first_worker_and_others_join(scheduler: OneByOne) -> None:
    items = ["x", "xxx", "xx"]
    first, late = join(scheduler, "a", items), join(scheduler, "b", items)
    assert (first.given, late.given) == ([1], [2])
    assert not scheduler.tests_finished


def test_an_item_given_back_goes_to_a_worker_that_waits(scheduler: OneByOne) -> None:
    lost, waiting = join(scheduler, "a", ["x"]), join(scheduler, "b", ["x"])
    assert scheduler.remove_node(lost) == "x"
    scheduler.give_back("x")
    assert waiting.given == [0]
    assert not waiting.shutting_down


def test_a_worker_that_is_gone_while_it_is_given_an_item_breaks_nothing(
    scheduler: OneByOne,
) -> None:
    gone = join(scheduler, "a", ["x"], gone=True)
    assert scheduler.item_of(gone) == "x"
    assert scheduler.remove_node(gone) == "x"


def test_an_item_that_belongs_to_a_worker_goes_to_no_other(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytestconfig.option, "tx", ["popen"])
    scheduler = OneByOne(pytestconfig, None, Rules({"xx": "b"}))
    other, owner = join(scheduler, "a", ["xx"]), join(scheduler, "b", ["xx"])
    assert (other.given, owner.given) == ([], [0])


def test_of_all_that_are_free_the_one_that_suits_an_item_best_gets_it(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytestconfig.option, "tx", ["popen"])

    class Preferring(Rules):
        """Its items may run anywhere; one of them had better run on a certain worker."""

        def rank(self, nodeid: str, worker: Any) -> int | None:
            return 0 if (nodeid, worker.gateway.id) == ("xx", "b") else 1

    scheduler = OneByOne(pytestconfig, None, Preferring())
    workers = [Worker(name) for name in "ab"]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, ["xx", "x"])
    scheduler.schedule()
    assert [worker.given for worker in workers] == [[1], [0]]  # though "a" came first


def test_a_worker_with_other_items_is_not_given_any(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytestconfig.option, "tx", ["popen"])
    reports: list[Any] = []

    def note(report: Any) -> None:
        reports.append(report)

    hook = SimpleNamespace(pytest_collectreport=note)
    config = SimpleNamespace(
        hook=hook, getvalue=pytestconfig.getvalue, getoption=pytestconfig.getoption
    )
    scheduler = OneByOne(config, None, Rules())
    join(scheduler, "a", ["x"])
    assert join(scheduler, "b", ["y"]).shutting_down
    assert [report.outcome for report in reports] == ["failed"]
