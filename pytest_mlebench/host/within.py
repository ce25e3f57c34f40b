"""As much of some limits as a host has, for ``--mle-limits=host``."""

from __future__ import annotations

from dataclasses import replace

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.host.gpus import Gpu, find_gpus
from pytest_mlebench.host.leases import Capacity, here
from pytest_mlebench.limits import Limits


def within_capacity(limits: Limits, capacity: Capacity) -> Limits:
    """Return the limits, none of them more than there is."""
    memory = min(limits.memory_bytes, capacity.memory_bytes)
    gpus = _gpus() if capacity.place == here() else ()  # those of another machine cannot be leased
    number = min(limits.gpus, len(gpus))
    smallest = min((gpu.memory_bytes for gpu in gpus), default=limits.gpu_memory_bytes)
    return replace(
        limits,
        cpus=min(limits.cpus, capacity.cpus),
        memory_bytes=memory,
        shm_bytes=min(limits.shm_bytes, memory // 2),
        gpus=number,
        gpu_memory_bytes=min(limits.gpu_memory_bytes, smallest),
    )


def _gpus() -> tuple[Gpu, ...]:
    try:
        return find_gpus()
    except ConfigError:  # the host has none, or no driver
        return ()
