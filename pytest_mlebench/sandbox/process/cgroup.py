"""A control group for one attempt: the kernel itself bounds its memory and its processes.

    group = make(memory_bytes=…, pids=…)       # None where no group is given to us
    group.join()                               # in a child, for itself and all it will start

With version 2 a group must have been delegated to us (``systemd-run --user --scope -p
Delegate=yes pytest …`` does it), or we are root; with version 1 we must be root. Files and their
meaning: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/ of the kernel.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from pytest_mlebench.host.process_identity import process_start

_PREFIX = "mlebench-"
_SESSION = "mlebench"  # where the processes of a delegated group go: only leaves may have some
_CONTROLLERS = ("memory", "pids")
_OUR_OWN = 4  # processes between the supervisor and the agent
_PATIENCE = 5.0  # seconds for a group to be empty when its last process has ended

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Cgroup:
    """One group, which is one folder per controller with version 1."""

    memory: Path
    pids: Path
    version: int

    @property
    def folders(self) -> set[Path]:
        """Return all folders of the group."""
        return {self.memory, self.pids}

    def join(self) -> None:
        """Put this process into the group."""
        for folder in self.folders:
            _write(folder / "cgroup.procs", "0")

    def memory_bytes(self) -> int:
        """Return the memory in use, without the file cache that the kernel would give back."""
        used, cache = (
            ("memory.current", "inactive_file")
            if self.version == 2
            else ("memory.usage_in_bytes", "total_inactive_file")
        )
        in_use = int((self.memory / used).read_text())
        return max(0, in_use - _count(self.memory / "memory.stat", cache))

    def oom_kills(self) -> int:
        """Return how many processes the kernel has killed because the group's memory was full."""
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        return _count(self.memory / name, "oom_kill")

    def kill(self) -> None:
        """Kill every process of the group."""
        with contextlib.suppress(OSError):
            _write(self.memory / "cgroup.kill", "1")  # from Linux 5.14 on, version 2
            return
        for pid in (self.pids / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    def remove(self) -> None:
        """Remove the group, whose processes have ended or are about to."""
        deadline = time.monotonic() + _PATIENCE
        for folder in self.folders:
            while not _removed(folder):
                if time.monotonic() > deadline:
                    logger.debug("cannot remove the control group %s", folder)
                    break
                self.kill()
                time.sleep(0.01)


def make(*, memory_bytes: int, pids: int, root: Path = Path("/")) -> Cgroup | None:
    """Make a group for the attempt that this process supervises; None where we get none."""
    group = None
    try:
        group = _make(root)
        _limit(group, memory_bytes, pids + _OUR_OWN)
    except (OSError, ValueError, LookupError) as problem:
        logger.debug("no control group: %s", problem)
        if group is not None:
            group.remove()
        return None
    return group


def _make(root: Path) -> Cgroup:
    """Make the folders below the group that this process is in, or beside it."""
    lines = (root / "proc/self/cgroup").read_text().split()
    ours = {name: path for _, names, path in _fields(lines) for name in names.split(",")}
    name = f"{_prefix()}{os.getpid()}-{process_start(os.getpid())}"
    if all(controller in ours for controller in _CONTROLLERS):
        parents = [_folder(root, controller, ours[controller]) for controller in _CONTROLLERS]
        version = 1
    else:
        parents = [_parent(_folder(root, "", ours[""]))] * len(_CONTROLLERS)
        version = 2
    for parent in parents:
        _sweep(parent)
        (parent / name).mkdir(exist_ok=True)
    return Cgroup(parents[0] / name, parents[1] / name, version)


def _fields(lines: list[str]) -> list[list[str]]:
    return [line.split(":", 2) for line in lines]


def _folder(root: Path, controller: str, path: str) -> Path:
    """Return the folder of a group; in a container the mount may begin at the group itself."""
    mount = root / "sys/fs/cgroup" / controller
    folder = mount / path.lstrip("/")
    return folder if folder.is_dir() else mount


def _parent(own: Path) -> Path:
    """Return a group of version 2 that hands its controllers down to groups that we make in it."""
    for folder in (own, own.parent):
        if _hands_down(folder) and os.access(folder / "cgroup.procs", os.W_OK):
            return folder
    leaf = own / _SESSION
    leaf.mkdir(exist_ok=True)
    for _ in range(3):  # somebody may be starting a process just now
        for pid in (own / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                _write(leaf / "cgroup.procs", pid)
        with contextlib.suppress(OSError):
            _write(own / "cgroup.subtree_control", " ".join(f"+{name}" for name in _CONTROLLERS))
        if _hands_down(own):
            return own
    raise OSError(f"{own} hands no controllers down")


def _hands_down(folder: Path) -> bool:
    try:
        return set(_CONTROLLERS) <= set((folder / "cgroup.subtree_control").read_text().split())
    except OSError:
        return False


def _limit(group: Cgroup, memory_bytes: int, pids: int) -> None:
    if group.version == 2:
        _write(group.memory / "memory.max", str(memory_bytes))
        swap = (group.memory / "memory.swap.max", "0")
    else:
        _write(group.memory / "memory.limit_in_bytes", str(memory_bytes))
        swap = (group.memory / "memory.memsw.limit_in_bytes", str(memory_bytes))
    with contextlib.suppress(FileNotFoundError):  # a kernel that does not count swap
        _write(*swap)
    _write(group.pids / "pids.max", str(pids))


def _prefix() -> str:
    """Return how our groups begin: numbers of processes mean nothing in another table of them."""
    return f"{_PREFIX}{Path('/proc/self/ns/pid').stat().st_ino}-"


def _sweep(parent: Path) -> None:
    """Remove the groups of supervisors that were killed."""
    prefix = _prefix()
    for folder in parent.glob(f"{prefix}*-*"):
        pid, _, started = folder.name.removeprefix(prefix).partition("-")
        if pid.isdecimal() and process_start(int(pid)) != started:
            _removed(folder)


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _count(path: Path, key: str) -> int:
    for line in path.read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == key:
            return int(value)
    return 0


def _write(path: Path, text: str) -> None:
    # not write_text: it would make a file where there is none
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
