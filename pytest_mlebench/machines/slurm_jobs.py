"""The jobs of a run: allocations asked for by sbatch, found again by a name that only the run has.

A job lasts as long as its holder (``allocation_holder``) finds something to keep: it needs neither
this process nor a connection, and a session that resumes the run takes it over.
"""

from __future__ import annotations

import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_mlebench.errors import InfrastructureError
from pytest_mlebench.machines.hosts_file import Machine
from pytest_mlebench.machines.slurm import cancel, cancel_named
from pytest_mlebench.machines.ssh import outside_of_job

SUBMIT_SECONDS = 120  # for sbatch to answer
LOOK_SECONDS = 2.0  # for which an answer of squeue is good enough
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0  # seconds between two looks at a job that waits
_FORMAT = "%A|%T|%B|%k"  # number, state, the node of the batch script, comment (man squeue)
_WAITING = ("PENDING", "CONFIGURING", "SUSPENDED", "RUNNING")  # others are ending, or have ended


class AllocationRefused(InfrastructureError):
    """Slurm does not give what was asked for."""


@dataclass(frozen=True)
class SlurmJob:
    """A job that Slurm has, and has not begun to end."""

    number: str
    pool: str
    node: str | None  # where its holder is; None while it waits


def submit_words(machine: Machine, name: str) -> list[str]:
    """Return the command that asks for an allocation; the holder comes by its stdin."""
    # what a run is found by comes last, so that it holds; a restarted job would have lost all
    own = ["--no-requeue", "--output=/dev/null", f"--job-name={name}", f"--comment={machine.name}"]
    return [*outside_of_job(), "sbatch", "--parsable", *(machine.srun or ()), *own]


def holder_script(machine: Machine, idle_seconds: float) -> str:
    """Return the batch script of an allocation."""
    words = (machine.python, "-m", "pytest_mlebench.machines.allocation_holder", str(idle_seconds))
    return f"#!/bin/sh\nexec {shlex.join(words)}\n"


def refusal(machine: Machine) -> str | None:
    """Return why Slurm would not take a job with a pool's words, if it would not."""
    words = [*submit_words(machine, "mlebench-check"), "--test-only"]
    done = _run(words, "#!/bin/sh\n")
    if done.returncode == 0:
        return None
    return f"sbatch refuses srun = {shlex.join(machine.srun or ())!r}: {_last_words(done)}"


class SlurmJobs:
    """The allocations of a run."""

    def __init__(self, name: str, idle_seconds: float) -> None:
        self._name = name
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._has_ended = False
        self._looked_at = -LOOK_SECONDS
        self._active: dict[str, SlurmJob] | None = None

    def existing(self, pool: str) -> list[str]:
        """Return the jobs of a pool that an earlier session of the run has asked for."""
        return [job.number for job in (self._look() or {}).values() if job.pool == pool]

    def submit(self, machine: Machine) -> str:
        """Ask for an allocation, and return the number of its job, which may wait for days."""
        with self._lock:  # so that none is asked for behind the back of end()
            if self._has_ended:
                raise AllocationRefused("the session is ending")
            script = holder_script(machine, self._idle_seconds)
            done = _run(submit_words(machine, self._name), script)
            self._looked_at = -LOOK_SECONDS
        if done.returncode != 0:
            raise AllocationRefused(_last_words(done))
        return done.stdout.strip().partition(";")[0]

    def wait(self, number: str, pause: Callable[[float], bool]) -> SlurmJob | None:
        """Wait until a job runs; None if it ends before, or *pause* says that we do."""
        seconds = FIRST_PAUSE
        while True:
            active = self._look()
            job = None if active is None else active.get(number)
            if job is not None and job.node is not None:
                return job
            if (active is not None and job is None) or pause(seconds):
                return None
            seconds = min(seconds * 1.5, LONGEST_PAUSE)

    def cancel(self, number: str) -> None:
        """Give an allocation back."""
        cancel(number)

    def end(self) -> None:
        """Give back all that was asked for, and ask for no more."""
        with self._lock:
            self._has_ended = True
        cancel_named(self._name)

    def _look(self) -> dict[str, SlurmJob] | None:
        """Return the run's jobs as of a moment ago; None: Slurm does not answer."""
        with self._lock:
            if time.monotonic() - self._looked_at >= LOOK_SECONDS:
                words = ["squeue", "--noheader", f"--name={self._name}", f"--format={_FORMAT}"]
                done = _run(words)
                self._active = None if done.returncode != 0 else _jobs(done.stdout)
                self._looked_at = time.monotonic()
            return self._active


def _jobs(text: str) -> dict[str, SlurmJob]:
    found = {}
    for line in text.splitlines():
        number, state, node, pool = line.split("|", 3)
        if state in _WAITING:
            found[number] = SlurmJob(number, pool, node if state == "RUNNING" else None)
    return found


def _run(words: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command of Slurm; one that does not answer has failed."""
    try:
        return subprocess.run(
            words, input=text, capture_output=True, text=True, timeout=SUBMIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return subprocess.CompletedProcess(words, 1, "", str(problem))


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    reasons = [line for line in lines if not line.startswith("Try ")]
    return reasons[-1].removeprefix("sbatch: ") if reasons else f"exit status {done.returncode}"
