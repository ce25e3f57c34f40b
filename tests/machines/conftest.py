"""Fixtures on real hosts: namespaces of this machine with an sshd each, see scripts/hosts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from host_machines import HostMachines, RunningSession

REQUIRED = "MLEBENCH_REQUIRE_HOSTS"  # CI sets it: a test that skips there is a failure


@pytest.fixture(scope="session")
def three_hosts() -> Iterator[HostMachines]:
    """Three hosts that the tests of one process share."""
    lacking = [name for name in ("sshd", "ssh", "ip", "unshare") if shutil.which(name) is None]
    problem = f"needs {', '.join(lacking)}" if lacking else ""
    if os.getuid() != 0:
        problem = "only root can make hosts"
    if problem and os.environ.get(REQUIRED):
        pytest.fail(f"{REQUIRED} is set, but: {problem}")
    if problem:
        pytest.skip(problem)
    hosts = HostMachines(3)
    yield hosts
    hosts.down()


@pytest.fixture
def hosts(three_hosts: HostMachines) -> HostMachines:
    """Three hosts that are up, with nothing on their disks."""
    three_hosts.clear()
    return three_hosts


@pytest.fixture
def agent(three_hosts: HostMachines, tmp_path: Path) -> str:
    """An agent that waits until it is let go; a file that only the controller has."""
    return three_hosts.waiting_agent(tmp_path)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[object]:
    """Start sessions in the background, and end those that a test leaves running."""
    started: list[RunningSession] = []

    def begin(*arguments: str, folder: Path = tmp_path, **how: str) -> RunningSession:
        session = RunningSession(folder, *arguments, **how)
        started.append(session)
        return session

    yield begin
    for session in started:
        if session.process.poll() is None:
            session.process.kill()
            session.process.wait()
