"""Nodes of a Slurm on this machine, with which a campaign may do what happens to real ones."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "slurm"
SLOTS = 3


class SlurmNodes:
    """A pool of allocations on two nodes, in the place of hosts."""

    names = ("n1", "n2")

    def __init__(self, chance: random.Random, path: Path) -> None:
        self._random = chance
        self._path = path
        self._folder = path / "nodes"
        environment = os.environ | {"MLEBENCH_SLURM_DIR": str(path / "slurm")}
        self._script = lambda verb: (
            subprocess.run(
                [SCRIPT, verb], env=environment, check=True, capture_output=True, text=True
            ).stdout
        )
        os.environ["SLURM_CONF"] = self._script("start").strip().partition("=")[2]

    def down(self) -> None:
        """End Slurm."""
        self._script("stop")

    def write_toml(self, path: Path, **_changes: object) -> str:
        """Write a hosts.toml, and return the option that names it."""
        path.write_text(
            f'[slurm.pool]\nsrun = "-c2 --time=2:00:00"\npython = "{sys.executable}"\n'
            f'folder = "{self._folder}"\nslots = {SLOTS}\n'
        )
        return f"--mle-hosts={path}"

    def faults(self) -> dict[str, Callable[[str], bool]]:
        """Return what may happen to allocations, by name."""
        return {
            "worker": lambda name: self._kill(name, "worker"),
            "keeper": lambda name: self._kill(name, "keeper"),
            "connection": lambda name: self._kill(name, "connection"),
            "holder": lambda name: self._kill(name, "holder"),
            "scancel": self._scancel,
            "preemption": self._preempt,
        }

    def pids(self, name: str) -> list[int]:
        """Return the processes of our jobs on a node."""
        marks = {f"SLURM_CONF={os.environ['SLURM_CONF']}", f"SLURMD_NODENAME={name}"}
        return [pid for pid in _all() if marks <= set(_read(pid, "environ"))]

    def agents(self) -> list[int]:
        """Return the processes that may be agents of ours: their files are below our folder."""
        folder = str(self._folder)
        return [
            pid for pid in _all() if any(word.startswith(folder) for word in _read(pid, "cmdline"))
        ]

    def leftovers(self) -> list[str]:
        """Return what a session has left: jobs, processes, files of runs."""
        found = [f"job {job}" for job in self._jobs()]
        found += [f"{name}: process {pid}" for name in self.names for pid in self.pids(name)]
        return found + [str(path) for path in (self._folder / "runs").rglob("*")]

    def _jobs(self) -> list[str]:
        command = ["squeue", "--noheader", "--format=%A"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    def _scancel(self, _name: str) -> bool:
        jobs = self._jobs()
        if jobs:
            subprocess.run(["scancel", self._random.choice(jobs)], check=False)
        return bool(jobs)

    def _preempt(self, name: str) -> bool:
        """Ask for all of one node with a higher priority."""
        words = ("-p", "urgent", "-w", name, "--exclusive", "true")
        done = subprocess.run(["srun", *words], capture_output=True, timeout=240, check=False)
        return done.returncode == 0

    def _kill(self, name: str, kind: str) -> bool:
        found = [pid for pid in self.pids(name) if _kind_of(pid) == kind]
        if found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._random.choice(found), signal.SIGKILL)
        return bool(found)


def _all() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _read(pid: int, file: str) -> list[str]:
    try:
        return Path(f"/proc/{pid}/{file}").read_text(errors="replace").split("\0")
    except OSError:
        return []


def _kind_of(pid: int) -> str | None:
    """Return what a process of a job is to us, if it is anything."""
    words = _read(pid, "cmdline")
    if "pytest_mlebench.machines.allocation_holder" in words:
        return "holder"
    if "pytest_mlebench.machines.allocation_entry" in words:
        return "connection"
    if not any("sys.stdin.readline" in word for word in words):
        return None
    try:
        keeps = Path(f"/proc/{pid}/fd/1").readlink().name == ".keeper.log"
    except OSError:
        return None
    return "keeper" if keeps else "worker"
