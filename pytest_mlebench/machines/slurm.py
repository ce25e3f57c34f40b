"""Slurm: how long an allocation lasts by srun's words, and how to take back what was asked for."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from itertools import pairwise

SPARE_SECONDS = 900.0  # for preparing, collecting and grading, beside what the agent may use
_CANCEL_SECONDS = 30


def time_of(words: Sequence[str]) -> float | None:
    """Return the seconds that ``--time`` asks for; None where it is not given or not understood."""
    given = None
    for word, following in pairwise((*words, "")):
        if word.startswith("--time="):
            given = word.removeprefix("--time=")
        elif word in ("--time", "-t"):
            given = following
        elif word.startswith("-t") and not word.startswith("--"):
            given = word[2:]
    return None if given is None else seconds_of(given)


def cancel(job: str) -> None:
    """Cancel all jobs of a name, running or waiting."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # Slurm has its own limits, too
        subprocess.run(
            ["scancel", f"--name={job}"], capture_output=True, timeout=_CANCEL_SECONDS, check=False
        )


def seconds_of(text: str) -> float | None:
    """Return a time as srun writes it: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S (man srun)."""
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
