"""The GPUs of this host, found by NVML, as attempts may have them.

``CUDA_VISIBLE_DEVICES`` narrows them down, as for any other program; its numbers are taken in the
order of the PCI bus, which is NVML's. ``MLEBENCH_GPU_SHARE=2`` lets two attempts have the same GPU.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_mlebench._units import show_size
from pytest_mlebench.errors import ConfigError, HostTooSmall
from pytest_mlebench.limits import Limits

EXTRA = "pip install 'pytest-mlebench[gpu]'"
VISIBLE = "CUDA_VISIBLE_DEVICES"
SHARE = "MLEBENCH_GPU_SHARE"
WAY_OUT = "use --mle-gpus=0 to run without"


@dataclass(frozen=True)
class Gpu:
    """A GPU of this host."""

    id: str  # its UUID: the same for every program, whatever that sees of the others
    index: int
    name: str
    memory_bytes: int

    def describe(self) -> str:
        """Return one line for people."""
        return f"{self.name} ({show_size(self.memory_bytes)})"


def find_gpus() -> tuple[Gpu, ...]:
    """Return the GPUs that this process may use; raise ConfigError where NVML cannot tell."""
    return visible(_all_gpus(), os.environ.get(VISIBLE))


def visible(gpus: Iterable[Gpu], wanted: str | None) -> tuple[Gpu, ...]:
    """Return what a value of CUDA_VISIBLE_DEVICES leaves of some GPUs, in its order."""
    known = tuple(gpus)
    if wanted is None:
        return known
    chosen: dict[str, Gpu] = {}
    for word in wanted.split(","):
        found = [gpu for gpu in known if _is_meant(gpu, word.strip())]
        if len(found) != 1:
            break  # CUDA too sees nothing of what follows something that it does not know
        chosen[found[0].id] = found[0]
    return tuple(chosen.values())


def gpus_for(limits: Limits) -> tuple[str, ...]:
    """Return the ids of the GPUs that are good enough for attempts, or say why there are too few.

    One that may be shared is there as often as it may be leased.
    """
    if limits.gpus == 0:
        return ()
    share = _share()
    gpus = find_gpus()
    needed = limits.gpu_memory_bytes * share
    large = [gpu for gpu in gpus if gpu.memory_bytes >= needed]
    if len(large) < limits.gpus:
        raise _too_few(limits.gpus, gpus, needed)
    return tuple(gpu.id for gpu in large for _ in range(share))


def describe_gpus(ids: Iterable[str]) -> list[dict[str, object]]:
    """Return name and memory of leased GPUs, for a record."""
    known = {gpu.id: gpu for gpu in _all_gpus()}
    return [
        {"id": gpu.id, "name": gpu.name, "memory_bytes": gpu.memory_bytes}
        for identity in ids
        if (gpu := known.get(identity)) is not None
    ]


def _all_gpus() -> list[Gpu]:
    try:
        import pynvml  # late on purpose: an extra, and it loads the driver's library
    except ImportError:
        raise HostTooSmall(
            f"looking for GPUs needs the package nvidia-ml-py: {EXTRA}, or {WAY_OUT}"
        ) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as problem:
        raise HostTooSmall(f"no GPU was found on this host ({problem}): {WAY_OUT}") from None
    try:
        handles = [
            (index, pynvml.nvmlDeviceGetHandleByIndex(index))
            for index in range(pynvml.nvmlDeviceGetCount())
        ]
        return [
            Gpu(
                id=str(pynvml.nvmlDeviceGetUUID(handle)),
                index=index,
                name=str(pynvml.nvmlDeviceGetName(handle)),
                memory_bytes=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
            )
            for index, handle in handles
        ]
    except pynvml.NVMLError as problem:
        raise HostTooSmall(f"the GPUs of this host do not answer ({problem}): {WAY_OUT}") from None
    finally:
        pynvml.nvmlShutdown()


def _is_meant(gpu: Gpu, word: str) -> bool:
    if word.isdecimal():
        return gpu.index == int(word)
    return word.startswith("GPU-") and gpu.id.startswith(word)


def _share() -> int:
    text = os.environ.get(SHARE, "1")
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"{SHARE} must be a whole number, one or more, given: {text}")
    return int(text)


def _too_few(wanted: int, gpus: tuple[Gpu, ...], needed: int) -> HostTooSmall:
    count = f"{wanted} GPU{'' if wanted == 1 else 's'} with {show_size(needed)} of memory or more"
    if not gpus:
        hidden = f" ({VISIBLE} is set)" if VISIBLE in os.environ else ""
        return HostTooSmall(f"{count} wanted, but this host has none{hidden}: {WAY_OUT}")
    names = ", ".join(gpu.describe() for gpu in gpus)
    return HostTooSmall(
        f"{count} wanted, but this host has only {names}: "
        f"{WAY_OUT}, or lower gpus or gpu_memory in the agent's limits"
    )
