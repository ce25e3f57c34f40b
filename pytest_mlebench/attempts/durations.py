"""How long an agent's attempts took in earlier runs, so that the longest can begin first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from pytest_mlebench.layout import RunFolder

RUNS = 10  # the latest ones that are looked at


def earlier_seconds(runs: Path, agent: str) -> dict[str, float]:
    """Return the median seconds of an agent's attempts by competition, of its latest runs."""
    found: dict[str, list[float]] = {}
    for record in _records(runs):
        began, over = (record["timings"].get(phase) for phase in ("running", "collected"))
        if record["agent"] == agent and began is not None and over is not None:
            found.setdefault(record["competition"], []).append(over - began)
    return {competition: median(seconds) for competition, seconds in found.items()}


def _records(runs: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of the latest runs; what cannot be read says nothing about durations."""
    plans = sorted(runs.glob("*/run.json"), key=_changed, reverse=True)
    for plan in plans[:RUNS]:
        for seed in RunFolder(plan.parent).seeds():
            for attempt in seed.attempts():
                try:
                    record = json.loads(attempt.record.read_text(encoding="utf-8"))
                    if isinstance(record["timings"], dict) and record["agent"]:
                        yield record
                except (OSError, ValueError, KeyError, TypeError):
                    continue


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
