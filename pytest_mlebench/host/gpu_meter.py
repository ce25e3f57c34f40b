"""How busy leased GPUs are, asked of NVML by a thread: a driver that hangs holds up nobody.

A GPU that several attempts share tells what all of them do with it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from pytest_mlebench.host.usage import UsageLog

EVERY_SECONDS = 1.0  # NVML itself tells the busy part of the last second or less


@contextlib.contextmanager
def gpu_samples(gpus: Sequence[str], path: Path) -> Iterator[None]:
    """Sample the use of some GPUs, by their ids, to a file while the block runs."""
    if not gpus:
        yield
        return
    stop = threading.Event()
    arguments = (tuple(gpus), UsageLog(path), stop)
    threading.Thread(target=_sample, args=arguments, name="mlebench-gpus", daemon=True).start()
    try:
        yield
    finally:
        stop.set()


def _sample(gpus: Sequence[str], log: UsageLog, stop: threading.Event) -> None:
    try:
        import pynvml  # late on purpose: an extra, and it loads the driver's library

        pynvml.nvmlInit()
    except Exception:  # no curve is no reason to fail: whoever leased the GPUs has asked NVML, too
        return
    with contextlib.suppress(pynvml.NVMLError):
        handles = [pynvml.nvmlDeviceGetHandleByUUID(gpu) for gpu in gpus]
        _watch(pynvml, handles, log, stop)
    with contextlib.suppress(pynvml.NVMLError):
        pynvml.nvmlShutdown()


def _watch(pynvml: Any, handles: Sequence[Any], log: UsageLog, stop: threading.Event) -> None:
    busy: list[float] = []
    memory = 0
    while not stop.wait(EVERY_SECONDS):
        busy.append(fmean(pynvml.nvmlDeviceGetUtilizationRates(one).gpu for one in handles))
        used = sum(int(pynvml.nvmlDeviceGetMemoryInfo(one).used) for one in handles)
        memory = max(memory, used)
        if log.is_due:
            log.note(gpu=round(fmean(busy), 1), gpu_memory=memory)
            busy, memory = [], 0
