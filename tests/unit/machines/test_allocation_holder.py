"""The holder of an allocation, without Slurm: it keeps what workers leave, and ends without any."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_job import wait_until

from pytest_mlebench.machines.allocation_holder import socket_path

# a worker as execnet starts it, that forks something which outlives it until a file is there
FORKS = """
import os, pathlib, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(3):
            os.close(number)
        while not pathlib.Path(sys.argv[1]).exists():
            time.sleep(0.05)
    os._exit(0)
print(os.getppid(), flush=True)
sys.stdin.readline()
"""

# somebody who listens where a holder would
LISTENS = """
import os, pathlib, socket, sys
os.setuid(65534)  # nobody
path = pathlib.Path(sys.argv[1])
path.parent.mkdir()
server = socket.socket(socket.AF_UNIX)
server.bind(str(path))
path.parent.chmod(0o777)
path.chmod(0o777)
server.listen()
print("ready", flush=True)
connection, _ = server.accept()
print(socket.recv_fds(connection, 1 << 16, 3)[1], flush=True)
"""


@pytest.fixture
def job() -> Iterator[str]:
    """The number of a job that no Slurm has given."""
    number = f"test-{os.getpid()}-{os.urandom(4).hex()}"
    yield number
    assert not socket_path(number).parent.exists(), "the holder's folder is left"


def start(module: str, job: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", f"pytest_mlebench.machines.{module}", *words],
        env=os.environ | {"SLURM_JOB_ID": job},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def enter(job: str, end: Path) -> subprocess.Popen[str]:
    return start("allocation_entry", job, "-u", "-c", FORKS, str(end))


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_it_keeps_what_outlives_a_worker_and_then_ends(job: str, tmp_path: Path) -> None:
    holder = start("allocation_holder", job, "0.2")
    entry = enter(job, tmp_path / "end")
    assert line_of(entry) == str(holder.pid), "the worker is the holder's, not the step's"
    entry.communicate("\n")
    assert entry.returncode == 0
    with pytest.raises(subprocess.TimeoutExpired):
        holder.wait(2)
    (tmp_path / "end").touch()
    assert holder.wait(60) == 0


def test_a_worker_outlives_a_step_that_is_killed(job: str, tmp_path: Path) -> None:
    holder = start("allocation_holder", job, "0.2")
    (tmp_path / "end").touch()
    entry = enter(job, tmp_path / "end")
    line_of(entry)
    entry.kill()
    entry.wait()
    again = enter(job, tmp_path / "end")
    assert line_of(again) == str(holder.pid)
    for each in (entry, again):
        assert each.stdin is not None
        each.stdin.close()  # as Slurm does when a step has ended
    assert holder.wait(60) == 0


def test_the_end_of_the_job_is_passed_on_to_all_that_is_kept(job: str, tmp_path: Path) -> None:
    holder = start("allocation_holder", job, "600")
    entry = enter(job, tmp_path / "never")
    line_of(entry)
    holder.send_signal(signal.SIGTERM)  # as scancel does, to this process only
    assert entry.wait(60) == 256 - signal.SIGTERM
    assert holder.wait(60) == 0


def test_a_holder_to_whom_nobody_comes_ends(job: str) -> None:
    killed = start("allocation_holder", job, "600")
    assert wait_until(socket_path(job).exists, 60)
    killed.kill()  # and its folder is left
    killed.wait()
    module = "pytest_mlebench.machines.allocation_holder"
    code = f"import {module} as holder; holder.FIRST_SECONDS = 0.1; holder.main(['600'])"
    environment = os.environ | {"SLURM_JOB_ID": job}
    done = subprocess.run([sys.executable, "-c", code], env=environment, timeout=60, check=False)
    assert done.returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_nothing_is_given_to_another_user_who_listens_there(job: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", LISTENS, str(socket_path(job))]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as listener:
        assert line_of(listener) == "ready"
        entry = enter(job, tmp_path / "end")
        assert entry.wait(60) == 1
        assert line_of(listener) == "[]", "no streams have come"
    shutil.rmtree(socket_path(job).parent)
