"""What Slurm has given to the job that this process is in: memory, CPUs, time.

Slurm tells of it in variables (man srun, man sbatch: OUTPUT ENVIRONMENT VARIABLES). What it leaves
out of those of a step, a worker asks for and adds (``machines.slurm.note_allocation``).
"""

from __future__ import annotations

import os
import time

JOB = "SLURM_JOB_ID"
MEMORY = "SLURM_MEM_PER_NODE"  # MB of 2**20 bytes
ENDS = "MLEBENCH_ALLOCATION_ENDS"  # of the clock that all processes of a host share


def job() -> str | None:
    """Return the number of the job, if this process is in one."""
    return os.environ.get(JOB)


def memory_bytes() -> int | None:
    """Return the memory that the job may use on this node; None where nobody bounds it."""
    for name, times in (
        (MEMORY, 1),
        ("SLURM_MEM_PER_CPU", _number("SLURM_CPUS_ON_NODE")),
        ("SLURM_MEM_PER_GPU", _number("SLURM_GPUS_ON_NODE")),
    ):
        if (given := _number(name) * times) > 0:  # 0 is all that the node has
            return given * 2**20
    return None


def cpus() -> int | None:
    """Return how many CPUs of this node the job may use; None where nobody bounds them."""
    return _number("SLURM_CPUS_ON_NODE") or None


def seconds_left() -> float | None:
    """Return how long the job may go on; None where that is not known, or without end."""
    ends = os.environ.get(ENDS) if job() else None
    return None if ends is None else float(ends) - time.monotonic()


def note_end(seconds: float) -> None:
    """Note for this process and its children how long the job may go on."""
    os.environ[ENDS] = str(time.monotonic() + seconds)


def _number(name: str) -> int:
    text = os.environ.get(name, "") if job() else ""
    return int(text) if text.isdecimal() else 0
