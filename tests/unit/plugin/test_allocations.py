"""An allocation that is too old for an item: it is not begun there, or ended in time."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_mlebench.attempts.run import SAVE_SECONDS, _run_in_time
from pytest_mlebench.host import allocation
from pytest_mlebench.limits import STANDARD
from pytest_mlebench.plugin.allocations import NEEDED_SECONDS, Allocations
from pytest_mlebench.reports.results import ItemKey
from pytest_mlebench.sandbox import Ending, Job

HOUR = 3600.0
SHORT, LONG = (ItemKey(name, 0) for name in ("short", "long"))


@pytest.fixture
def allocations() -> Allocations:
    hours = {"short": HOUR, "long": 24 * HOUR}
    session: Any = SimpleNamespace(
        agent=None,
        registry=SimpleNamespace(load=lambda name: name),
        limits=lambda name, _agent: replace(STANDARD, time_seconds=hours[name]),
    )
    return Allocations(session)


class Worker:
    """A worker in its slot."""

    def __init__(self) -> None:
        self.mle_slot = SimpleNamespace(worker=self)


def test_an_item_begins_only_where_there_is_time_for_it(allocations: Allocations) -> None:
    worker, other = Worker(), Worker()
    allocations.note(worker, HOUR + NEEDED_SECONDS + 60)
    allocations.note(other, None)  # of ssh, or without end
    assert allocations.last_for(worker, SHORT)
    assert not allocations.last_for(worker, LONG)
    assert allocations.last_for(other, LONG)


def test_a_worker_ends_when_all_that_is_left_is_too_long_for_it(allocations: Allocations) -> None:
    worker = Worker()
    allocations.note(worker, HOUR + NEEDED_SECONDS + 60)
    assert list(allocations.spent([SHORT, LONG])) == []
    assert list(allocations.spent([])) == []
    assert list(allocations.spent([LONG])) == [worker]
    worker.mle_slot.worker = Worker()  # it has ended, and another is there
    assert list(allocations.spent([LONG])) == []


class Seen:
    """A sandbox that takes note of how long the agent may take."""

    name = "seen"

    def run(self, job: Job) -> Ending:
        self.seconds = job.limits.time_seconds
        return Ending("time-limit", None, job.limits.time_seconds, details={"of": "mine"})


@pytest.mark.parametrize(
    ("left", "seconds", "details"),
    [
        (None, 24 * HOUR, {"of": "mine"}),
        (25 * HOUR, 24 * HOUR, {"of": "mine"}),
        (2 * HOUR, 2 * HOUR - SAVE_SECONDS, {"of": "mine", "allocation_seconds": 6900}),
    ],
)
def test_the_end_of_an_allocation_is_a_time_limit(
    left: float | None,
    seconds: float,
    details: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv(allocation.JOB, "7")
    monkeypatch.setenv(allocation.ENDS, "" if left is None else str(time.monotonic() + left))
    if left is None:
        monkeypatch.delenv(allocation.ENDS)
    sandbox = Seen()
    job: Any = _job(tmp_path)
    ending = _run_in_time(sandbox, job)  # type: ignore[arg-type]  # as much of one as is used
    assert sandbox.seconds == pytest.approx(seconds, abs=5)
    assert ending.details == details


def _job(folder: Path) -> Job:
    return Job(
        competition="c",
        seed=0,
        agent=None,  # type: ignore[arg-type]  # not used
        limits=STANDARD,
        network="none",
        data=folder,
        instructions="",
        folder=folder,
        check=lambda _: None,
        hidden=(),
        labels={},
    )
