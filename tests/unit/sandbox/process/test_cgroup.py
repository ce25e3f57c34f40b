"""A control group bounds an attempt where we are given one.

Groups of version 1 are real here where we are root. A kernel has each controller in one version
only: for version 2 the files are those of its documentation, laid by hand.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sandbox_job import wait_until

from pytest_mlebench.sandbox.process import cgroup
from pytest_mlebench.sandbox.process.cgroup import Cgroup

UNIFIED = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))


@pytest.fixture
def group() -> Cgroup:
    made = cgroup.make(memory_bytes=100_000_000, pids=20)
    if made is None:
        pytest.skip("no control group is given to us here")
    return made


def joined(group: Cgroup, program: str) -> int:
    """Run a program in the group and return its exit status."""
    child = os.fork()
    if child == 0:
        group.join()
        os.execv(sys.executable, [sys.executable, "-c", program])
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_memory_is_bounded_by_the_kernel(group: Cgroup) -> None:
    assert joined(group, "x = b'x' * 50_000_000") == 0
    assert group.oom_kills() == 0
    assert joined(group, "x = b'x' * 200_000_000") == -9
    assert group.oom_kills() == 1
    group.remove()
    assert not any(folder.exists() for folder in group.folders)


def test_processes_are_bounded_by_the_kernel(group: Cgroup) -> None:
    program = "import os\nfor _ in range(40):\n  if os.fork() == 0: os.read(0, 1); os._exit(0)"
    assert joined(group, program) == 1, "BlockingIOError"
    group.remove()


def test_a_group_is_removed_with_whoever_is_in_it(group: Cgroup) -> None:
    sleeper = subprocess.Popen(
        [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"],
        preexec_fn=group.join,  # noqa: PLW1509  # this process has one thread
        stdout=subprocess.PIPE,
    )
    assert sleeper.stdout is not None
    sleeper.stdout.readline()
    assert group.memory_bytes() > 100_000
    group.kill()
    assert sleeper.wait() == -9
    sleeper.stdout.close()
    group.remove()
    assert not any(folder.exists() for folder in group.folders)


def test_what_a_killed_supervisor_left_is_swept_by_the_next(group: Cgroup) -> None:
    table = Path("/proc/self/ns/pid").stat().st_ino
    dead = group.pids.with_name(f"mlebench-{table}-4194304-1")
    dead.mkdir()
    elsewhere = group.pids.with_name("mlebench-1-4194304-1")  # in another namespace of processes
    elsewhere.mkdir()
    again = cgroup.make(memory_bytes=10**8, pids=20)
    assert again is not None
    assert not dead.exists()
    assert elsewhere.exists(), "nobody here can tell whether its process lives"
    elsewhere.rmdir()
    again.remove()


class TestVersion2:
    """The same by the files of version 2."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        (tmp_path / "proc" / "self").mkdir(parents=True)
        (tmp_path / "proc" / "self" / "cgroup").write_text("0::/user.slice/pytest.scope\n")
        own = tmp_path / "sys" / "fs" / "cgroup" / "user.slice" / "pytest.scope"
        own.mkdir(parents=True)
        for folder in (own, own.parent):
            (folder / "cgroup.procs").touch()
            (folder / "cgroup.subtree_control").touch()
        return tmp_path

    @pytest.fixture
    def own(self, root: Path) -> Path:
        return root / "sys" / "fs" / "cgroup" / "user.slice" / "pytest.scope"

    def test_a_group_that_hands_its_controllers_down_is_used(self, own: Path) -> None:
        (own / "cgroup.subtree_control").write_text("cpu memory pids\n")
        assert cgroup._parent(own) == own

    def test_else_the_one_above_it(self, own: Path) -> None:
        (own.parent / "cgroup.subtree_control").write_text("memory pids\n")
        assert cgroup._parent(own) == own.parent

    def test_a_delegated_group_is_emptied_first(self, own: Path) -> None:
        (own / "cgroup.procs").write_text("4242\n")
        (own / "mlebench").mkdir()
        (own / "mlebench" / "cgroup.procs").touch()
        with pytest.raises(OSError, match="hands no controllers down"):
            cgroup._parent(own)  # which is what the kernel's own files would do now
        assert (own / "mlebench" / "cgroup.procs").read_text() == "4242"
        assert (own / "cgroup.subtree_control").read_text() == "+memory +pids"

    def test_a_group_that_is_not_ours_is_none(self, root: Path) -> None:
        assert cgroup.make(memory_bytes=1, pids=1, root=root) is None

    def test_limits_and_counts(self, own: Path) -> None:
        group = Cgroup(own, own, 2)
        for name in ("memory.max", "memory.swap.max", "pids.max"):
            (own / name).touch()
        cgroup._limit(group, 10**9, 50)
        found = [(own / name).read_text() for name in ("memory.max", "memory.swap.max", "pids.max")]
        assert found == ["1000000000", "0", "50"]
        (own / "memory.current").write_text("5000000\n")
        (own / "memory.stat").write_text("anon 1000\ninactive_file 2000000\n")
        (own / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
        assert group.memory_bytes() == 3_000_000
        assert group.oom_kills() == 2

    def test_the_kernel_kills_a_whole_group(self) -> None:
        """On a real hierarchy of version 2, though it has no controllers here."""
        mounts = [path for path in UNIFIED if (path / "cgroup.controllers").exists()]
        if not mounts or not os.access(mounts[0], os.W_OK):
            pytest.skip("no hierarchy of version 2 is ours to write")
        folder = mounts[0] / f"mlebench-test-{os.getpid()}"
        folder.mkdir()
        group = Cgroup(folder, folder, 2)
        sleeper = subprocess.Popen(["sleep", "600"])
        (folder / "cgroup.procs").write_text(str(sleeper.pid))
        group.kill()
        assert sleeper.wait() == -9
        group.remove()
        assert wait_until(lambda: not folder.exists())
