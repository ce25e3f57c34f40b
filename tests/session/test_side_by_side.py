"""Attempts side by side: as many as the host holds, and no more."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from plugin_session import Session
from sandbox_job import wait_until

from pytest_mlebench.host.hardware import host_cpus, host_memory

TWO = ("--mle-competition=demo-digits", "--mle-competition=demo-wine-cultivars")
MOST = f"--mle-memory={host_memory() // 3 * 2}B"
HALF = f"--mle-cpus={host_cpus() / 2}"

SLEEPING = """
import os, shutil, time
time.sleep({pause})
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""


WAITING = """
import os, shutil, socket
try:
    socket.create_connection(("127.0.0.1", {port})).recv(1)
except OSError:
    pass  # nobody is to wait any more
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""


def spans(records: dict[str, dict[str, Any]]) -> list[tuple[float, float]]:
    """Return when each attempt ran."""
    timings = [record["timings"] for record in records.values()]
    return sorted((moments["running"], moments["collected"]) for moments in timings)


@pytest.fixture
def prepared(session: Session) -> None:
    """Datasets that are there, so that two attempts begin at about the same time."""
    session.run("--mle-agent=dummy", "--mle-prepare=only", *TWO)


@pytest.fixture
def gate() -> Iterator[socket.socket]:
    """Where agents wait until it is closed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(240)
        yield server


def start(session: Session, gate: socket.socket, *options: str) -> subprocess.Popen[bytes]:
    """Start two workers on two attempts whose agents wait at the gate."""
    agent = session.agent("waiting", WAITING.format(port=gate.getsockname()[1]))
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--mle-run=mine", "-n2")
    return subprocess.Popen(
        [*command, f"--mle-agent={agent}", *options, *TWO], cwd=session.path, env=dict(os.environ)
    )


def waiting(session: Session) -> int:
    """Return how many attempts have had to wait for others."""
    return sum("waiting" in record["timings"] for record in session.records("mine").values())


@pytest.mark.usefixtures("prepared")
def test_attempts_of_two_workers_that_do_not_fit_together_run_one_after_the_other(
    session: Session, gate: socket.socket
) -> None:
    process = start(session, gate, MOST, HALF)
    assert wait_until(lambda: waiting(session) == 1, 240)
    gate.close()
    assert process.wait(timeout=240) == 0
    first, second = spans(session.records("mine"))
    assert first[1] <= second[0]
    assert waiting(session) == 1


@pytest.mark.usefixtures("prepared")
def test_attempts_that_share_the_host_run_side_by_side(
    session: Session, gate: socket.socket
) -> None:
    process = start(session, gate)
    agents = [gate.accept()[0] for _ in TWO]  # each waits there while the other one comes
    gate.close()
    for agent in agents:
        agent.close()
    assert process.wait(timeout=240) == 0
    first, second = spans(session.records("mine"))
    assert second[0] < first[1]


@pytest.mark.usefixtures("prepared")
def test_attempts_of_two_sessions_do_not_add_up_to_more_than_the_host_has(
    session: Session,
) -> None:
    agent = f"--mle-agent={session.agent('sleeping', SLEEPING.format(pause=1))}"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", agent, MOST, HALF]
    sessions = [
        subprocess.Popen(
            [*command, f"--mle-run=run{number}", one], cwd=session.path, env=dict(os.environ)
        )
        for number, one in enumerate(TWO)
    ]
    assert [process.wait(timeout=120) for process in sessions] == [0, 0]
    first, second = spans(session.records("run0") | session.records("run1"))
    assert first[1] <= second[0]


def test_limits_beyond_the_host_are_refused_before_anything_runs(session: Session) -> None:
    result = session.run("--mle-agent=dummy", TWO[0], f"--mle-cpus={host_cpus() + 1}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        f"*the limit of {host_cpus() + 1} CPUs is more than the {host_cpus()} that this host has: "
        f"use --mle-cpus={host_cpus()} or fewer"
    )
