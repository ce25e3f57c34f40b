"""Keepers: processes that hold an attempt and outlive whoever started them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sandbox_job import wait_until

from pytest_mlebench.errors import DatasetError, SandboxError
from pytest_mlebench.machines import keeper


def no_stop() -> bool:
    return False


def nothing() -> None:
    """Do nothing."""


def waiting_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.02)


def processes_of(folder: Path) -> list[str]:
    """Return the processes that print to the keeper's log."""
    found = []
    for path in Path("/proc").glob("[0-9]*/fd/1"):
        with contextlib.suppress(OSError):
            if path.readlink() == folder / ".keeper.log":
                found.append(path.parts[2])
    return found


def test_a_keeper_does_the_work_and_is_waited_for(tmp_path: Path) -> None:
    keeper.start_keeper(
        tmp_path, lambda: (tmp_path / "done").write_text(str(os.getpid())), grace=60
    )
    keeper.wait_for_end(tmp_path, tend=nothing, is_stopping=no_stop)
    assert int((tmp_path / "done").read_text()) != os.getpid()
    assert not keeper.is_kept(tmp_path)


def test_what_the_work_raises_comes_out_where_one_waits(tmp_path: Path) -> None:
    def fail() -> None:
        raise DatasetError("no such data")

    keeper.start_keeper(tmp_path, fail, grace=60)
    with pytest.raises(DatasetError, match=r"^no such data$"):
        keeper.wait_for_end(tmp_path, tend=nothing, is_stopping=no_stop)


def test_an_attempt_that_nobody_asks_for_ends_itself(tmp_path: Path) -> None:
    keeper.start_keeper(tmp_path, lambda: time.sleep(600), grace=1)
    assert keeper.is_kept(tmp_path)
    words = "abandoned: no session has asked for it within its grace of 1s"
    with pytest.raises(SandboxError, match=words):
        keeper.wait_for_end(tmp_path, tend=nothing, is_stopping=no_stop)


def test_a_beat_keeps_an_attempt_alive(tmp_path: Path) -> None:
    go = tmp_path / "go"
    keeper.start_keeper(tmp_path, lambda: waiting_for(go), grace=1)
    began = time.monotonic()

    def tend() -> None:
        keeper.beat(tmp_path)
        if time.monotonic() - began > 3:
            go.touch()

    keeper.wait_for_end(tmp_path, tend=tend, is_stopping=no_stop)


def test_an_attempt_is_ended_at_once_where_that_is_asked_for(tmp_path: Path) -> None:
    keeper.start_keeper(tmp_path, lambda: time.sleep(600), grace=600)
    keeper.end(tmp_path)
    assert not keeper.is_kept(tmp_path)


def test_a_keeper_that_is_killed_is_the_benchmarks_own_fault(tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    def work() -> None:
        pid.write_text(str(os.getpid()))
        time.sleep(600)

    keeper.start_keeper(tmp_path, work, grace=600)
    assert wait_until(lambda: pid.is_file() and pid.read_text() != "", 30)
    os.kill(int(pid.read_text()), signal.SIGKILL)
    with pytest.raises(SandboxError, match="was killed"):
        keeper.wait_for_end(tmp_path, tend=nothing, is_stopping=no_stop)


def test_what_a_killed_keeper_leaves_is_ended_by_its_warden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, cleaned = tmp_path / "pid", tmp_path / "cleaned"

    def work() -> None:
        pid.write_text(str(os.getpid()))
        time.sleep(600)

    become_leader = os.setsid

    def late() -> None:  # as on a busy host
        time.sleep(0.5)
        become_leader()

    monkeypatch.setattr(os, "setsid", late)
    keeper.start_keeper(tmp_path, work, grace=600, after_kill=cleaned.touch)
    assert wait_until(lambda: pid.is_file() and pid.read_text() != "", 30)
    os.killpg(os.getpgid(int(pid.read_text())), signal.SIGKILL)
    assert wait_until(cleaned.is_file, 30)


def test_after_a_keeper_that_ends_well_there_is_nothing_to_clean_up(tmp_path: Path) -> None:
    go, cleaned = tmp_path / "go", tmp_path / "cleaned"
    keeper.start_keeper(tmp_path, lambda: waiting_for(go), grace=600, after_kill=cleaned.touch)
    assert len(processes_of(tmp_path)) == 2
    go.touch()
    keeper.wait_for_end(tmp_path, tend=nothing, is_stopping=no_stop)
    assert wait_until(lambda: processes_of(tmp_path) == [], 30)
    assert not cleaned.exists()


def test_an_answer_that_comes_late_renews_the_lease_from_when_it_was_asked_for(
    tmp_path: Path,
) -> None:
    keeper.start_keeper(tmp_path, lambda: time.sleep(600), grace=3)
    asked = keeper.boot_clock()

    def tend() -> None:
        keeper.beat(tmp_path, asked)  # again and again, of one question

    with pytest.raises(SandboxError, match="abandoned"):
        keeper.wait_for_end(tmp_path, tend=tend, is_stopping=no_stop)


def test_an_attempt_that_does_not_end_by_itself_is_killed_before_its_lease_is_over(
    tmp_path: Path,
) -> None:
    def stubborn() -> None:
        while True:
            try:
                time.sleep(600)
            except KeyboardInterrupt:
                continue

    began = keeper.boot_clock()
    keeper.start_keeper(tmp_path, stubborn, grace=3)
    with pytest.raises(SandboxError, match="abandoned: no session has asked for it"):
        keeper.wait_for_end(tmp_path, tend=nothing, is_stopping=no_stop)
    assert keeper.ending_seconds(3) == 1
    assert keeper.ending_seconds(1800) == keeper.STOP_SECONDS
    assert keeper.boot_clock() - began >= 3 - keeper.POLL_SECONDS


STARTER = """
import pathlib, sys, time
from pytest_mlebench.machines import keeper
folder = pathlib.Path(sys.argv[1])

def work():
    while not (folder / "go").exists():
        time.sleep(0.02)
    (folder / "done").touch()

keeper.start_keeper(folder, work, grace=60)
print("started", flush=True)
time.sleep(600)
"""


def test_an_attempt_outlives_the_process_that_began_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == "started\n"
        starter.kill()
        assert starter.stdout.read() == ""  # the keeper holds nothing of it
    assert keeper.is_kept(tmp_path)
    (tmp_path / "go").touch()
    keeper.wait_for_end(tmp_path, tend=nothing, is_stopping=no_stop)
    assert (tmp_path / "done").exists()
