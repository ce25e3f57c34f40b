"""A process and all its descendants: who they are, what they occupy, how they end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_ROUNDS = 50
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Process:
    """One line of the process table."""

    pid: int
    parent: int
    resident: int  # bytes


class Tree:
    """The children of this process, which adopts orphans; *main* is the one that counts."""

    def __init__(self, main: int = 0) -> None:
        self.status: int | None = None  # of main, once it has ended
        self._main = main

    def reap(self) -> bool:
        """Collect the children that have ended and tell whether any are left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._main:
                self.status = status

    def send(self, number: signal.Signals) -> None:
        """Signal every descendant."""
        for process in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)

    def kill(self, patience: float) -> int:
        """Kill every descendant, those born meanwhile too; return how many would not go."""
        deadline = time.monotonic() + patience
        while self.reap():
            if time.monotonic() > deadline:  # in the kernel's hands, as on a lost network disk
                return len(descendants(os.getpid()))
            self.send(signal.SIGKILL)
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


def memory(found: list[Process], limit: int) -> int:
    """Return the bytes that processes occupy, counting shared pages once if it matters."""
    resident = sum(process.resident for process in found)
    if resident <= limit:
        return resident  # the exact figure is dear: it walks through all pages
    return sum(_proportional(process) for process in found)


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
        found.append(Process(pid, int(fields[1]), int(fields[21]) * _PAGE))
    return found


def _by_ps() -> list[Process]:
    command = ["ps", "-axo", "pid=,ppid=,rss="]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [
        Process(int(pid), int(parent), int(resident) * 1024)
        for pid, parent, resident in (line.split() for line in lines)
    ]


def _proportional(process: Process) -> int:
    try:
        text = (_PROC / str(process.pid) / "smaps_rollup").read_bytes()
    except OSError:
        return process.resident
    for line in text.splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return process.resident
