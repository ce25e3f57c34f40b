"""An attempt that may take long has a disk of its own, which the kernel keeps to its limits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attempt_folders import write_attempt, write_run
from disks import mounted_tmpfs
from sandbox_job import HELPERS, Finished, Place, wait_until

from pytest_mlebench.agent import Agent
from pytest_mlebench.attempts.leftovers import remove_workspaces
from pytest_mlebench.errors import ConfigError, SandboxError
from pytest_mlebench.host.demo_limits import demo_limits
from pytest_mlebench.layout import AttemptFolder
from pytest_mlebench.limits import STANDARD
from pytest_mlebench.sandbox import disk
from pytest_mlebench.sandbox.disk import Amount
from pytest_mlebench.sandbox.process import kernel, own_disk
from pytest_mlebench.sandbox.process.own_disk import OwnDisk, OwnDiskGuard
from pytest_mlebench.sandbox.process.process_sandbox import ProcessSandbox

MB = 10**6
SUBMISSION = 'echo label > "$SUBMISSION_DIR/submission.csv"'

# Only the kernel knows of these files: no name, no process that has them open.
IN_FLIGHT = """
import os, socket, time
kept = []
for number in range(200):
    path = f"{os.environ['CODE_DIR']}/f{number}"
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    os.unlink(path)
    ends = socket.socketpair()
    socket.send_fds(ends[0], [b"x"], [file])
    kept.append(ends)
    try:
        os.write(file, bytes(2_000_000))
    except OSError:
        pass
    os.close(file)
time.sleep(600)
"""
UNLINKED = """
import os, time
file = open(os.environ["TMPDIR"] + "/f", "wb", buffering=0)
os.unlink(file.name)
try:
    for _ in range(400):
        file.write(bytes(1_000_000))
except OSError as problem:
    print(problem.strerror, flush=True)
time.sleep(600)
"""
MANY_FILES = """
import os, time
try:
    for number in range(100_000):
        os.symlink("x", f"{os.environ['CODE_DIR']}/{number}")
except OSError as problem:
    print(problem.strerror, flush=True)
time.sleep(600)
"""
SESSION = """
import sys
from pathlib import Path
from sandbox_job import Place
place = Place(Path(sys.argv[1]), builders=("namespaces",))
place.sandbox(own_disk_seconds=0).run(place.job(shell="echo up; sleep 600"))
"""


@pytest.fixture(autouse=True)
def needs_disks(request: pytest.FixtureRequest) -> None:
    """Skip where no disk can be made; what is said then is tested everywhere."""
    if request.cls is TestWhereThereIsNone:
        return
    if not own_disk.is_due(STANDARD):
        pytest.skip("only root can mount a disk")
    if problem := own_disk.find_problem():
        pytest.skip(f"no disks here: {problem}")


@pytest.fixture
def below(tmp_path: Path) -> Iterator[Path]:
    """A disk of 300 MB, on which there can be others."""
    with mounted_tmpfs(tmp_path / "below", "size=300m") as folder:
        yield folder


@pytest.fixture
def mounted(below: Path) -> Iterator[OwnDisk]:
    """A disk on that one."""
    found = OwnDisk.mount(below / "home", demo_limits())
    yield found
    found.close()


def run(place: Place, **options: Any) -> Finished:
    job = place.job(**options)
    return Finished(job, place.sandbox(own_disk_seconds=0, grace_seconds=0.3).run(job))


def disks_of(folder: Path) -> list[str]:
    """Return the loop devices that are a file below a folder."""
    files = Path("/sys/block").glob("loop*/loop/backing_file")
    return [text for file in files if str(folder) in (text := file.read_text())]


def test_an_agent_works_on_it_as_on_any_other(place: Place, tmp_path: Path) -> None:
    done = run(place, shell=f'{SUBMISSION}; cat "$DATA_DIR/train.csv"; df -k . | tail -n 1')
    assert done.outcome.reason == "exited"
    assert done.outcome.walls[-1] == "disk"
    assert done.submission == "label\n"
    *data, line = done.log.splitlines()
    assert data == ["id,label", "0,0"]
    assert 19_000_000 < int(line.split()[1]) < 21_000_000, "kilobytes; the limit is 20 GB"
    assert not (done.job.folder / "home").exists()
    assert wait_until(lambda: not disks_of(tmp_path))


@pytest.mark.parametrize(
    ("program", "limits", "reason"),
    [
        (IN_FLIGHT, {"disk_bytes": 50 * MB}, "disk-limit"),
        (UNLINKED, {"disk_bytes": 50 * MB}, "disk-limit"),
        (MANY_FILES, {"files": 2000}, "files-limit"),
    ],
    ids=["in-flight", "unlinked", "files"],
)
def test_who_fills_it_has_failed_and_nobody_else_notices(
    tmp_path: Path, program: str, limits: dict[str, float], reason: str
) -> None:
    place = Place(tmp_path, builders=("namespaces",))
    neighbour: list[Finished] = []
    # one that is at work all the time: it ends when the other one has
    gate = place.public / "gate"
    job = place.job(
        shell=f'until [ -e "$DATA_DIR/{gate.name}" ]; do sleep 0.05; done; {SUBMISSION}'
    )
    sandbox = place.sandbox(own_disk_seconds=0, grace_seconds=0.3)
    beside = threading.Thread(target=lambda: neighbour.append(Finished(job, sandbox.run(job))))
    beside.start()
    try:
        done = run(place, python=program, **limits)
    finally:
        gate.touch()
        beside.join()
    assert done.outcome.reason == reason
    assert done.outcome.details["disk_bytes"] < 110 * MB, "the limit, and what shows its excess"
    assert neighbour[0].outcome.reason == "exited"
    assert neighbour[0].submission == "label\n"


def test_no_two_attempts_have_the_same_user(own_place: Place) -> None:
    users = [run(own_place, shell="id -u").log for _ in range(2)]
    assert len(set(users)) == 2


def test_a_short_attempt_has_none(own_place: Place) -> None:
    assert "disk" not in own_place.run(shell="true").outcome.walls
    assert not own_disk.is_due(demo_limits())


def test_nothing_is_left_of_a_session_that_is_killed(tmp_path: Path) -> None:
    variables = os.environ | {"PYTHONPATH": str(HELPERS)}
    command = [sys.executable, "-c", SESSION, str(tmp_path)]
    session = subprocess.Popen(command, env=variables)
    attempt = tmp_path / "runs" / "run" / "tiny" / "seed0" / "attempt1"
    log, home = attempt / "run.log", attempt / "home"
    assert wait_until(lambda: log.exists() and log.read_text() == "up\n", 60)
    assert home.is_mount()
    session.send_signal(signal.SIGKILL)
    session.wait()
    assert wait_until(lambda: not home.is_mount(), 60)
    assert wait_until(lambda: not disks_of(tmp_path), 60)


def test_a_disk_that_nobody_unmounted_is_removed_with_the_workspace(tmp_path: Path) -> None:
    folder = write_run(tmp_path, ("a", 0))
    attempt = AttemptFolder(write_attempt(folder, "a", 0, "running").folder)
    os.close(OwnDisk.mount(attempt.home, demo_limits()).descriptor)
    (attempt.home / "file").touch()
    assert remove_workspaces(folder) == [attempt.home]
    assert not attempt.home.exists()
    assert wait_until(lambda: not disks_of(tmp_path))


def test_what_is_deleted_is_given_back_to_the_disk_below(mounted: OwnDisk, below: Path) -> None:
    before = os.statvfs(below).f_bfree
    file = mounted.place / "file"
    with file.open("wb") as stream:
        stream.write(bytes(50 * MB))
        os.fsync(stream.fileno())
    assert os.statvfs(below).f_bfree < before
    file.unlink()
    assert wait_until(lambda: os.statvfs(below).f_bfree > before - 500)


def guard_of(own: OwnDisk) -> OwnDiskGuard:
    limit, reserve = Amount(10**15, 10**9), Amount(20 * MB, 500)
    return OwnDiskGuard(own.place, own.image, limit=limit, reserve=reserve)


def test_who_fills_the_disk_below_is_to_blame(mounted: OwnDisk) -> None:
    guard = guard_of(mounted)
    (mounted.place / "file").write_bytes(bytes(300 * MB))  # in memory, most of it
    assert guard.look() == "disk-full"
    assert guard.blame() == "disk-limit"


def test_a_disk_below_that_others_fill_is_no_agents_fault(
    mounted: OwnDisk, below: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "_RELEASE_SECONDS", 0.2)
    guard = guard_of(mounted)
    (mounted.place / "file").write_bytes(bytes(10 * MB))
    (below / "of-somebody-else").write_bytes(bytes(295 * MB))
    assert guard.look() == "disk-full"
    with pytest.raises(SandboxError, match="not by the agent's doing"):
        guard.blame()


class TestWhereThereIsNone:
    """A host that has no disks to give says so, and watches instead."""

    @pytest.fixture(autouse=True)
    def none(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setattr(own_disk, "_SYSTEM_PATH", "/nonexistent")
        monkeypatch.setattr(kernel, "is_admin", lambda: True)
        own_disk.find_problem.cache_clear()
        yield
        own_disk.find_problem.cache_clear()

    @pytest.mark.skipif(os.geteuid() != 0, reason="about root")
    def test_the_header_says_why(self) -> None:
        lines = self.preflight()
        assert lines[1] == (
            "walls missing: no disk: what it writes is counted, not bounded by the kernel "
            "([Errno 2] mke2fs is not installed (apt install e2fsprogs))"
        )

    @pytest.mark.skipif(os.geteuid() != 0, reason="about root")
    def test_who_requires_all_walls_is_refused(self) -> None:
        with pytest.raises(ConfigError, match=r"not complete on this host \(no disk: what it"):
            self.preflight(require_walls=True)

    def preflight(self, **options: Any) -> tuple[str, ...]:
        sandbox = ProcessSandbox(own_disk_seconds=0, builders=("namespaces",), **options)
        return sandbox.preflight(Agent("a", command=("true",)), demo_limits(), "open")


def test_a_disk_that_cannot_be_made_for_once_is_watched_instead(
    own_place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    own_disk.find_problem()  # there are disks, and then there are none
    monkeypatch.setattr(own_disk, "_SYSTEM_PATH", "/nonexistent")
    done = run(own_place, shell="true")
    assert "disk" not in done.outcome.walls
    assert "cannot give the attempt a disk of its own" in caplog.text
    job = own_place.job(shell="echo started")
    with pytest.raises(SandboxError, match="cannot give the attempt a disk of its own"):
        own_place.sandbox(own_disk_seconds=0, require_walls=True).run(job)
    assert not job.log.exists()
