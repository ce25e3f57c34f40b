"""Calls are shared with child processes; results come in order, errors come through."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import repeat
from pathlib import Path

import pytest

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.host.crew import AHEAD, Call, Crew

HERE = partial(os.getpid)


def double(crew: Crew, count: int) -> list[int]:
    return list(crew.map(partial(pow, number, 2) for number in range(count)))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_results_come_in_the_order_of_the_calls(size: int) -> None:
    with Crew(size) as crew:
        assert double(crew, 100) == [number**2 for number in range(100)]
        assert double(crew, 0) == []
        assert double(crew, 7) == [number**2 for number in range(7)]  # by the same processes


def test_several_processes_take_part() -> None:
    with Crew(3) as crew:
        pids: set[int] = set()
        while len(pids) < 3:
            pids |= set(crew.map([partial(_wait_a_little)] * 6))
        assert os.getpid() in pids
    with Crew(1) as alone:
        assert set(alone.map([HERE] * 5)) == {os.getpid()}


def _wait_a_little() -> int:
    time.sleep(0.02)
    return os.getpid()


def test_calls_are_made_only_a_little_ahead() -> None:
    asked: list[int] = []

    def calls() -> Iterator[Call]:
        for number in range(1000):
            asked.append(number)
            yield partial(abs, number)

    with Crew(2) as crew:
        results = crew.map(calls())
        assert next(results) == 0
        assert len(asked) <= 2 * AHEAD + 2
        results.close()  # type: ignore[attr-defined]  # it is a generator
    assert len(asked) <= 2 * AHEAD + 3


@pytest.mark.parametrize("size", [1, 3])
def test_an_error_in_a_call_ends_the_work(size: int) -> None:
    calls = [partial(int, text) for text in ["1", "2", "x", *["3"] * 20]]
    with Crew(size) as crew, pytest.raises((ValueError, PreparationError), match="invalid literal"):
        list(crew.map(calls))


@pytest.mark.parametrize("size", [1, 3])
def test_an_error_between_calls_ends_the_work(size: int) -> None:
    def calls() -> Iterator[Call]:
        yield partial(abs, -1)
        raise OSError("no more")

    with Crew(size) as crew, pytest.raises(OSError, match="no more"):
        list(crew.map(calls()))


def test_a_child_that_is_killed_is_an_error_and_not_a_wait_for_ever() -> None:
    call = partial(_die_unless, os.getpid())
    with Crew(2) as crew, pytest.raises(PreparationError, match="was killed: out of memory"):
        list(crew.map(repeat(call)))  # until it is a child's turn


def _die_unless(pid: int) -> None:
    time.sleep(0.02)
    if os.getpid() != pid:
        os.kill(os.getpid(), signal.SIGKILL)


def test_no_child_outlives_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\n"
        "from functools import partial\n"
        "from pathlib import Path\n"
        "from pytest_mlebench.host.crew import Crew\n"
        "with Crew(3) as crew:\n"
        "    list(crew.map([partial(abs, 1)] * 3))\n"
        "    pids = [child.pid for child in crew._children]\n"
        f"    Path({str(tmp_path / 'new')!r}).write_text(' '.join(map(str, pids)))\n"
        f"    Path({str(tmp_path / 'new')!r}).rename({str(tmp_path / 'pids')!r})\n"
        "    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        while not (tmp_path / "pids").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2
    while any(_is_running(pid) for pid in pids):
        time.sleep(0.01)


def _is_running(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
