"""Keepers: processes that hold an attempt and outlive whoever started them."""

from __future__ import annotations

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
    with pytest.raises(SandboxError, match="abandoned: no session has asked for it for 1s"):
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
    assert wait_until(pid.is_file, 30)
    os.kill(int(pid.read_text()), signal.SIGKILL)
    with pytest.raises(SandboxError, match="was killed"):
        keeper.wait_for_end(tmp_path, tend=nothing, is_stopping=no_stop)


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
