"""What this host is made of, and what of it this process may use."""

from __future__ import annotations

import os
import platform

from pytest_mlebench._units import show_size
from pytest_mlebench.host import allocation


def host_cpus() -> int:
    """Return how many CPUs this process may use: in a job of Slurm, no more than it was given."""
    here = hasattr(os, "sched_getaffinity")
    found = len(os.sched_getaffinity(0)) if here else os.cpu_count() or 1
    return min(found, allocation.cpus() or found)


def host_memory() -> int:
    """Return the bytes of memory of this host: in a job of Slurm, no more than it was given."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(found, allocation.memory_bytes() or found)


def host_hardware() -> dict[str, str]:
    """Return what this host is made of, for the disclosure."""
    return {
        "cpus": str(host_cpus()),
        "memory": show_size(host_memory()),
        "machine": platform.machine(),
        "system": f"{platform.system()} {os.uname().release}",
        "python": platform.python_version(),
    }
