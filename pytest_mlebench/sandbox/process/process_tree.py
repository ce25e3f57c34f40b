"""A process and all its descendants: who they are, what they occupy, how they end."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_ROUNDS = 50
_TRIES = 3
_PSS = re.compile(rb"^(Pss|Pss_Shmem): +(\d+) kB$", re.MULTILINE)  # see proc_pid_smaps_rollup(5)
_PAGE, _TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")  # bytes; per second


@dataclass(frozen=True)
class Process:
    """One line of the process table."""

    pid: int
    parent: int
    resident: int  # bytes
    cpu_seconds: float  # with those of its children that have ended


def reap() -> bool:
    """Collect the children of this process that have ended and tell whether any are left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True


def send(number: signal.Signals, *, children_only: bool = False) -> None:
    """Signal every descendant of this process, or its children only."""
    for process in descendants(os.getpid()):
        if process.parent == os.getpid() or not children_only:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)


def kill(patience: float, *, children_only: bool = False) -> int:
    """Kill every descendant, those born meanwhile too; return how many would not go.

    *children_only* will do where the end of a child is the end of all below it.
    """
    deadline = time.monotonic() + patience
    while reap():
        if time.monotonic() > deadline:  # in the kernel's hands, as on a lost network disk
            return len(descendants(os.getpid()))
        send(signal.SIGKILL, children_only=children_only)
        time.sleep(0.005)
    return 0


def processes() -> list[Process]:
    """Return the process table, by /proc where there is one, else by ps."""
    if (_PROC / "self" / "stat").exists():
        return _by_proc()
    return _by_ps()


def descendants(pid: int) -> list[Process]:
    """Return every process below *pid*."""
    children = defaultdict(list)
    for process in processes():
        children[process.parent].append(process)
    found: list[Process] = []
    queue = [pid]
    while queue:
        below = children.pop(queue.pop(), [])
        found += below
        queue += [process.pid for process in below]
    return found


def memory(listed: Callable[[], list[Process]], limit: int, apart: Callable[[], int] = int) -> int:
    """Return the bytes that processes occupy, counting shared pages once if it matters.

    *apart* tells what is in memory that no process need have mapped: files in it, segments.
    """
    found = listed()
    occupied = sum(process.resident for process in found) + apart()
    for _ in range(_TRIES if (_PROC / "self" / "smaps_rollup").exists() else 0):
        if occupied <= limit:
            break  # the exact figure is expensive: it walks through all pages
        # Shares are read one after the other. When one of those who share ends meanwhile, the
        # next have larger shares than the first had: only what is too much again and again is.
        occupied = min(occupied, _shared_once(found, apart()))
        found = listed()
    return occupied


def _shared_once(found: list[Process], apart: int) -> int:
    alone = shared = 0
    for process in found:
        own, mapped = _proportional(process)
        alone += own
        shared += mapped
    # What is mapped of the memory apart is in both; whoever hides it in one of them has the other.
    largest = max((process.resident for process in found), default=0)
    return max(alone + max(shared, apart), largest)


def kill_by_variable(variable: str) -> None:
    """Kill the processes in whose environment *variable* (``NAME=value``) stands."""
    for _ in range(_ROUNDS):
        found = [pid for pid in _pids() if variable.encode() in _environment(pid)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _pids() -> list[int]:
    return [int(path.name) for path in _PROC.glob("[0-9]*")]


def _environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _by_proc() -> list[Process]:
    found = []
    for pid in _pids():
        try:
            text = (_PROC / str(pid) / "stat").read_bytes()
        except OSError:  # it has just ended
            continue
        fields = text[text.rindex(b")") + 2 :].split()  # a name may hold blanks and brackets
        ticks = sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime: see proc_pid_stat(5)
        found.append(Process(pid, int(fields[1]), int(fields[21]) * _PAGE, ticks / _TICKS))
    return found


def _by_ps() -> list[Process]:
    command = ["ps", "-axo", "pid=,ppid=,rss=,time="]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [
        Process(int(pid), int(parent), int(resident) * 1024, _seconds(time_used))
        for pid, parent, resident, time_used in (line.split() for line in lines)
    ]


def _seconds(clock: str) -> float:
    """Return the seconds of ``days-hours:minutes:seconds``, of which ps leaves out the first."""
    days, _, rest = clock.rpartition("-")
    seconds = 0.0
    for part in rest.split(":"):
        seconds = 60 * seconds + float(part)
    return 86_400 * int(days or 0) + seconds


def _proportional(process: Process) -> tuple[int, int]:
    """Return a process' part of the pages that it has, and of those in shared memory."""
    try:
        text = (_PROC / str(process.pid) / "smaps_rollup").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0  # it has just ended: what it shared is in the parts of the others
    except OSError:
        return process.resident, 0  # closed to us: one of our own between us and the agent
    sizes = {name: int(value) * 1024 for name, value in _PSS.findall(text)}
    shared = sizes.get(b"Pss_Shmem", 0)
    return sizes.get(b"Pss", 0) - shared, shared
