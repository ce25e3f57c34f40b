"""The limits of competitions that run at home: minutes, and what the host has."""

from __future__ import annotations

from dataclasses import replace

from pytest_mlebench.host.hardware import host_cpus, host_memory
from pytest_mlebench.limits import STANDARD, Limits


def demo_limits() -> Limits:
    """Return the limits of the demo split: minutes, what the host has, no GPU."""
    memory = host_memory()
    return replace(
        STANDARD,
        time_seconds=600,
        cpus=host_cpus(),
        memory_bytes=memory,
        gpus=0,
        shm_bytes=min(STANDARD.shm_bytes, memory // 2),
        disk_bytes=20 * 10**9,
        files=1_000_000,
        log_bytes=10**8,
        submission_bytes=10**9,
        artefact_bytes=10**9,
    )
