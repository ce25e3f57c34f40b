"""The silence of a controller, which ends a worker on another machine that has listened."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pytest_mlebench.machines import link as link_module
from pytest_mlebench.machines.link import Link


class Channel:
    """An end of a channel, through which a test lets messages come."""

    def setcallback(self, receive: Callable[[Any], None], endmarker: object) -> None:
        self.receive = receive


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """What is set when the worker's process would end."""
    event = threading.Event()
    monkeypatch.setattr(link_module.os, "_exit", lambda _status: event.set())
    return event


def clock(monkeypatch: pytest.MonkeyPatch, *ticks: float) -> threading.Event:
    """Let the looks be so many seconds apart, the last one for ever; set when that has begun."""
    times = itertools.accumulate(itertools.chain(ticks, itertools.repeat(ticks[-1])))
    steady, left = threading.Event(), itertools.count(-len(ticks) - 20)

    def now() -> float:
        if next(left) > 0:
            steady.set()
        return next(times)

    monkeypatch.setattr(link_module, "_now", now)
    monkeypatch.setattr(link_module, "WATCH_SECONDS", 0.001)
    return steady


def test_a_controller_that_is_silent_for_long_ends_the_worker(
    monkeypatch: pytest.MonkeyPatch, ended: threading.Event
) -> None:
    clock(monkeypatch, 0.001)
    Link(Channel(), silence=0.02)
    assert ended.wait(60)


def test_a_worker_that_was_held_up_itself_listens_again_first(
    monkeypatch: pytest.MonkeyPatch, ended: threading.Event
) -> None:
    steady = clock(monkeypatch, 0.0, 0.0, 0.0, 1000.0, 0.0)  # as if stopped, or asleep
    link = Link(Channel(), silence=60)
    assert steady.wait(60)
    assert not ended.is_set()
    link.close()
