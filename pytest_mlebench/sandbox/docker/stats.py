"""What a container uses, sampled to a small file: often at first, seldom later."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = "stats.jsonl"

_OFTEN, _SELDOM = 1.0, 60.0  # seconds between samples
_SLOWDOWN = 30  # an interval is this part of the time passed: about 1600 samples in 24 hours
_CACHE = ("total_inactive_file", "inactive_file")  # cgroup v1, v2


class Sampler:
    """Keeps samples and what is worth knowing about all of them."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._started = time.monotonic()
        self.due = self._started + 0.1
        self.peak_memory: int | None = None
        self.cpu_seconds: float | None = None
        self.peak_pids = 0
        self.throttling: dict[str, float] = {}

    def take(self, stats: Mapping[str, Any], disk: int) -> None:
        """Note one answer of the engine, unless the container is gone already."""
        now = time.monotonic()
        self.due = now + min(_SELDOM, max(_OFTEN, (now - self._started) / _SLOWDOWN))
        usage = stats.get("memory_stats", {}).get("usage")
        if not usage:
            return
        self._summarise(stats, _working_set(stats["memory_stats"]))
        sample = {
            "t": round(now - self._started, 1),
            "memory": _working_set(stats["memory_stats"]),
            "cpu": self.cpu_seconds,
            "pids": stats.get("pids_stats", {}).get("current", 0),
            "disk": disk,
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(sample) + "\n")

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
