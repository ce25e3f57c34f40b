"""Slurm: how long an allocation lasts, what it holds, and how to take back what was asked for."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise

from pytest_mlebench._units import parse_size
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.host import allocation

SPARE_SECONDS = 900.0  # for preparing, collecting and grading, beside what the agent may use
ANSWER_SECONDS = 30
_ENDLESS = ("0", "UNLIMITED", "INFINITE", "-1")  # man srun, --time: no limit is imposed
_CONSTRAINTS = {"ConstrainRAMSpace": "memory", "ConstrainDevices": "GPUs"}  # man cgroup.conf
POLL_SECONDS = 1.0
# states in which nothing of a job runs; of a node that does not answer nobody knows (man squeue)
ENDED = ("CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT")


def time_of(words: Sequence[str]) -> float | None:
    """Return the seconds that ``--time`` asks for; None where it is not given or not understood."""
    given = _option(words, "time", "t")
    return None if given is None else seconds_of(given)


def partitions_of(words: Sequence[str]) -> list[str]:
    """Return the partitions that srun is told to use; none: Slurm has one for that."""
    given = _option(words, "partition", "p") or os.environ.get("SLURM_PARTITION", "")
    return [name for name in given.split(",") if name]


def has_ended(job: str) -> bool:
    """Tell whether Slurm says that a job has ended, and so everything in its allocation."""
    try:
        done = subprocess.run(
            ["scontrol", "show", "job", "--oneliner", job],
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    words = dict(word.partition("=")[::2] for word in done.stdout.split())
    return words.get("JobState", "") in ENDED


def wait_for_end(job: str, seconds: float) -> bool:
    """Wait until a job has ended, as long as that is worth it; tell whether it has."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if has_ended(job):
            return True
        time.sleep(POLL_SECONDS)
    return False


def seconds_of(text: str) -> float | None:
    """Return a time as srun writes it: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S (man srun)."""
    if text.upper() in _ENDLESS:
        return math.inf
    days, dash, rest = text.rpartition("-")
    try:
        numbers = [int(part) for part in rest.split(":")]
        whole = int(days) if dash else 0
    except ValueError:
        return None
    if dash:
        hours, minutes, seconds = (*numbers, 0, 0)[:3]
    elif len(numbers) == 3:
        hours, minutes, seconds = numbers
    else:
        hours, (minutes, seconds) = 0, (*numbers, 0)[:2]
    return float(whole * 86400 + hours * 3600 + minutes * 60 + seconds)


def usual_time(words: Sequence[str]) -> float | None:
    """Return how long an allocation lasts for which no time is asked; None: nobody knows."""
    wanted = partitions_of(words)
    found = []
    for line in _ask("show", "partition", "--oneliner").splitlines():
        facts = _facts(line)
        name = facts.get("PartitionName")
        if name in wanted or (not wanted and facts.get("Default") == "YES"):
            text = facts.get("DefaultTime", "NONE")
            found.append(seconds_of(facts.get("MaxTime", "") if text == "NONE" else text))
    known = [each for each in found if each is not None]
    return min(known) if known and len(known) == len(found) else None


def not_enforced() -> list[str] | None:
    """Return what Slurm does not keep jobs from exceeding; None where it does not tell."""
    text = _ask("show", "config")
    settings = {
        name.strip(): value.strip()
        for name, equals, value in (line.partition("=") for line in text.splitlines())
        if equals
    }
    if "TaskPlugin" not in settings:
        return None
    by_cgroup = "task/cgroup" in settings["TaskPlugin"].split(",")
    return [
        f"{what} ({name})"
        for name, what in _CONSTRAINTS.items()
        if not by_cgroup or settings.get(name, "no").lower() != "yes"
    ]


def note_allocation() -> None:
    """Ask what the job of this process may use, and note what its variables do not tell."""
    job = allocation.job()
    if job is None:
        return
    facts = _facts(_ask("show", "job", "--oneliner", job))
    limit, passed = seconds_of(facts.get("TimeLimit", "")), seconds_of(facts.get("RunTime", ""))
    if limit is not None and passed is not None and math.isfinite(limit):
        allocation.note_end(limit - passed)
    given = dict(part.partition("=")[::2] for part in facts.get("TRES", "").split(","))
    if allocation.memory_bytes() is None and "mem" in given:
        with contextlib.suppress(ConfigError):
            # of all nodes of the job, and ours has one; in units of 1024 (man scontrol)
            size = parse_size(f"{given['mem']}iB", "the memory of a job")
            os.environ[allocation.MEMORY] = str(size // 2**20)


def cancel(job: str) -> None:
    """Cancel a job by its number."""
    _scancel(job)


def cancel_named(name: str) -> None:
    """Cancel all jobs of a name, running or waiting."""
    _scancel(f"--name={name}")


def _scancel(word: str) -> None:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # Slurm has its own limits, too
        subprocess.run(["scancel", word], capture_output=True, timeout=ANSWER_SECONDS, check=False)


def _option(words: Sequence[str], long: str, short: str) -> str | None:
    """Return the last value of an option among srun's words."""
    given = None
    for word, following in pairwise((*words, "")):
        if word.startswith(f"--{long}="):
            given = word.removeprefix(f"--{long}=")
        elif word in (f"--{long}", f"-{short}"):
            given = following
        elif word.startswith(f"-{short}") and not word.startswith("--"):
            given = word[2:]
    return given


def _ask(*words: str) -> str:
    """Return what scontrol answers; nothing where it does not."""
    try:
        done = subprocess.run(
            ["scontrol", *words], capture_output=True, timeout=ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


def _facts(line: str) -> Mapping[str, str]:
    """Return the words NAME=VALUE of a line."""
    pairs = (word.partition("=") for word in line.split())
    return {name: value for name, equals, value in pairs if equals}
