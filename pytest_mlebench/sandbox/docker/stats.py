"""What a container uses, as its engine tells it: samples, and what is worth knowing of all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_mlebench.host.usage import UsageLog

_EARLY = 0.1  # seconds to the first sample: a short life has no other figures
_CACHE = ("total_inactive_file", "inactive_file")  # cgroup v1, v2


class Sampler:
    """Keeps samples and what is worth knowing about all of them."""

    def __init__(self, path: Path) -> None:
        self.log = UsageLog(path, first=_EARLY)
        self.peak_memory: int | None = None
        self.cpu_seconds: float | None = None
        self.peak_pids = 0
        self.throttling: dict[str, float] = {}

    def take(self, stats: Mapping[str, Any], disk: int) -> None:
        """Note one answer of the engine, unless the container is gone already."""
        usage = stats.get("memory_stats", {}).get("usage")
        if not usage:
            self.log.skip()
            return
        memory = _working_set(stats["memory_stats"])
        self._summarise(stats, memory)
        pids = stats.get("pids_stats", {}).get("current", 0)
        self.log.note(memory=memory, cpu=self.cpu_seconds, pids=pids, disk=disk)

    def _summarise(self, stats: Mapping[str, Any], memory: int) -> None:
        cpu = stats.get("cpu_stats", {})
        # The highest mark is the kernel's own where it tells it; it counts no file cache here.
        self.peak_memory = max(self.peak_memory or 0, memory)
        self.cpu_seconds = round(cpu.get("cpu_usage", {}).get("total_usage", 0) / 1e9, 3)
        self.peak_pids = max(self.peak_pids, stats.get("pids_stats", {}).get("current", 0))
        throttling = cpu.get("throttling_data") or {}
        self.throttling = {
            "periods": throttling.get("periods", 0),
            "throttled_periods": throttling.get("throttled_periods", 0),
            "throttled_seconds": round(throttling.get("throttled_time", 0) / 1e9, 3),
        }


def _working_set(memory: Mapping[str, Any]) -> int:
    """Return the memory in use without the file cache that the kernel would give back."""
    details = memory.get("stats") or {}
    cache = next((details[key] for key in _CACHE if key in details), 0)
    return max(0, int(memory["usage"]) - int(cache))
