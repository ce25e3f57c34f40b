"""Owners: which process something belongs to, and whether that process still lives."""

from __future__ import annotations

import os
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

PREFIX = "pytest-mlebench."  # of the labels of whatever an engine keeps for us
OWNED = f"{PREFIX}owner"  # every container, network and volume of ours has it


@dataclass(frozen=True)
class Owner:
    """A process on a host; its start time tells it from a later one with the same number."""

    host: str
    boot: str
    pid: int
    started: str

    def labels(self) -> dict[str, str]:
        """Return the labels that name this owner."""
        return {
            OWNED: f"{self.host}:{self.pid}",
            f"{PREFIX}host": self.host,
            f"{PREFIX}boot": self.boot,
            f"{PREFIX}pid": str(self.pid),
            f"{PREFIX}started": self.started,
        }

    def is_dead(self) -> bool:
        """Tell whether this owner was a process of this host and is no more."""
        if self.host != host_name():
            return False  # we cannot know
        if self.boot != boot_id():
            return True
        return process_start(self.pid) != self.started


def this_process() -> Owner:
    """Return the owner of what this process starts."""
    pid = os.getpid()
    return Owner(host_name(), boot_id(), pid, process_start(pid) or "?")


def host_name() -> str:
    """Return this host's name; inside a container the pid namespace makes it another host."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink()).partition("[")[2].rstrip("]")
    except OSError:
        space = "-"
    return f"{socket.gethostname()}/{space}"


def boot_id() -> str:
    """Return what changes with every boot of this machine, where there is such a thing."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def process_start(pid: int) -> str | None:
    """Return when a process started, in the system's own words; None if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return None if Path("/proc/self").exists() else _start_by_ps(pid)
    except (ProcessLookupError, PermissionError):
        return None
    fields = text.rpartition(")")[2].split()  # the name in parentheses may hold anything
    return None if fields[0] in "ZX" else fields[19]


def _start_by_ps(pid: int) -> str | None:
    result = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return result.stdout.strip() or None
