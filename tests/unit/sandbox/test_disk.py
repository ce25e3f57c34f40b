"""Whoever fills a disk is found out, by what is there and by what comes back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from disks import mounted_tmpfs
from sandbox_job import Place

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.sandbox.disk import Amount, DiskGuard, DiskMeter

MB = 10**6
LARGE = Amount(10**15, 10**9)

# Holds files that have no name until it is told to end; only the kernel knows of some of them.
HOLDER = """
import mmap, os, socket, sys
folder, size, number, way = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
hide = way == "hide"
one, two = socket.socketpair()
kept = []
for count in range(number):
    file = os.open(f"{folder}/f{count}", os.O_RDWR | os.O_CREAT)
    os.unlink(f"{folder}/f{count}")
    os.write(file, bytes(size // number))
    if hide and count % 100 == 0:  # on their way from one end of a socket to the other
        one, two = socket.socketpair()
        kept.append((one, two))
    if way == "map":  # a single page of it
        kept.append(mmap.mmap(file, mmap.PAGESIZE))
        os.close(file)
    if hide:
        socket.send_fds(one, [b"x"], [file])
        os.close(file)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own: 100 MB, 4000 files."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk for this")
    with mounted_tmpfs(tmp_path / "disk", "size=100m,nr_inodes=4000") as folder:
        yield folder


@pytest.fixture
def home(disk: Path) -> Path:
    """An agent's folder on that disk."""
    folder = disk / "home"
    folder.mkdir()
    return folder


def make_guard(
    home: Path, limit: Amount = LARGE, processes: Callable[[], list[int]] = list
) -> DiskGuard:
    reserve = Amount(20 * MB, 500)
    return DiskGuard(home, limit=limit, processes=processes, reserve=reserve)


@pytest.fixture
def holder() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a process that holds files without a name."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", HOLDER, *map(str, arguments)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_names_are_counted_with_what_is_in_them(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "file").write_bytes(bytes(100_000))
    (tmp_path / "skipped").mkdir()
    (tmp_path / "skipped" / "file").write_bytes(bytes(100_000))
    meter = DiskMeter(tmp_path, skip=["skipped"])
    meter.measure()
    assert meter.found.files == 4
    assert 100_000 <= meter.found.bytes < 200_000


def test_a_walk_that_is_not_over_counts_already(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / str(number)).touch()
    meter = DiskMeter(tmp_path)
    assert not meter.step(20)
    assert meter.found.files == 20


def test_an_agent_may_use_its_limits(home: Path) -> None:
    guard = make_guard(home, Amount(50 * MB, 100))
    (home / "file").write_bytes(bytes(30 * MB))
    assert guard.look() is None


def test_bytes_beyond_the_limit_end_an_agent(home: Path) -> None:
    guard = make_guard(home, Amount(10 * MB, 100))
    (home / "file").write_bytes(bytes(30 * MB))
    assert guard.look() == "disk-limit"


def test_files_beyond_the_limit_end_an_agent(home: Path) -> None:
    guard = make_guard(home, Amount(10 * MB, 100))
    for number in range(200):
        (home / str(number)).touch()
    assert guard.look() == "files-limit"


@pytest.mark.parametrize("way", ["show", "map"])
def test_files_without_a_name_count(
    home: Path, holder: Callable[..., subprocess.Popen[bytes]], way: str
) -> None:
    pids: list[int] = []
    guard = make_guard(home, Amount(10 * MB, 100), processes=lambda: pids)
    pids.append(holder(home, 30 * MB, 3, way).pid)
    assert guard.look() == "disk-limit"
    assert guard.used.files == 3


def test_who_fills_a_disk_is_to_blame(home: Path) -> None:
    guard = make_guard(home)
    (home / "file").write_bytes(bytes(85 * MB))
    assert guard.look() == "disk-full"
    assert guard.blame() == "disk-limit"


def test_who_uses_up_the_files_of_a_disk_is_to_blame(home: Path) -> None:
    guard = make_guard(home)
    for number in range(3600):
        (home / str(number)).touch()
    assert guard.look() == "disk-full"
    assert guard.blame() == "files-limit"


@pytest.mark.parametrize(
    ("size", "number", "reason"), [(96 * MB, 3, "disk-limit"), (3800, 3800, "files-limit")]
)
def test_who_fills_it_with_what_nobody_sees_is_to_blame_by_what_comes_back(
    home: Path,
    holder: Callable[..., subprocess.Popen[bytes]],
    size: int,
    number: int,
    reason: str,
) -> None:
    guard = make_guard(home)
    agent = holder(home, size, number, "hide")
    assert guard.look() == "disk-full"
    assert guard.used.bytes < 10 * MB
    agent.kill()
    agent.wait()
    assert guard.blame() == reason


def test_a_disk_that_others_fill_is_no_agents_fault(disk: Path, home: Path) -> None:
    guard = make_guard(home)
    (home / "small").write_bytes(bytes(5 * MB))
    (disk / "of-somebody-else").write_bytes(bytes(92 * MB))
    assert guard.look() == "disk-full"
    with pytest.raises(SandboxError) as caught:
        guard.blame()
    assert str(caught.value).startswith(
        f"the disk that holds {home} is nearly full, and not by the agent's doing: "
    )


def test_who_has_not_filled_a_disk_waits_a_little_longer(disk: Path, home: Path) -> None:
    guard = make_guard(home)
    (disk / "of-somebody-else").write_bytes(bytes(90 * MB))
    assert guard.look() is None, "15 MB are left, the reserve is 20 MB"


def test_an_attempt_does_not_begin_on_a_disk_that_is_nearly_full(disk: Path, home: Path) -> None:
    (disk / "of-somebody-else").write_bytes(bytes(70 * MB))
    with pytest.raises(SandboxError, match=r"the disk that holds .* has too little left to begin"):
        make_guard(home)


FILL = """
import os, time
for count in range(40_000):
    open(os.environ["CODE_DIR"] + f"/f{count}", "w").close()
time.sleep(600)
"""


def test_an_agent_that_uses_up_the_files_of_a_disk_gets_no_other_try(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk for this")
    with mounted_tmpfs(tmp_path, "size=3g,nr_inodes=50000"):
        done = Place(tmp_path / "place").run(python=FILL)
    assert done.outcome.reason == "files-limit"
