"""What the viewer shows of runs, read from disk in bounded time and kept until it changes."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_mlebench._plain_text import tail_lines
from pytest_mlebench._units import show_duration
from pytest_mlebench.attempts.plan import Plan, read_plan
from pytest_mlebench.attempts.progress import AttemptProgress, RunProgress
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.layout import AttemptFolder, RunFolder
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.cost_text import shown_usd
from pytest_mlebench.reports.page.curves import usage_curves
from pytest_mlebench.reports.report import Report
from pytest_mlebench.usage import read_usage
from pytest_mlebench.viewer.inside import run_folder, run_names

SHOWN_RUNS = 200
LIST_SECONDS = 3.0  # that reading runs for the list may take
SHOWN_ATTEMPTS = 32  # that run at the same time
TAIL_LINES, TAIL_COLUMNS = 15, 200
FRESH_SECONDS = 10.0  # for which a report of a run that goes on is good enough


@dataclass(frozen=True)
class Card:
    """A run in the list."""

    name: str
    agent: str = ""
    splits: str = ""
    seeds: int | None = None
    progress: str = ""
    rates: tuple[tuple[str, str], ...] = ()  # split, any-medal rate
    cost: str = ""
    problem: str = ""


class Runs:
    """The runs of a folder; from any thread."""

    def __init__(self, root: Path, registry: Registry) -> None:
        self.root = root
        self.registry = registry
        self._reports: dict[str, tuple[object, float, Report]] = {}
        self._progress: dict[str, RunProgress] = {}
        self._locks: dict[str, threading.RLock] = {}  # one for each run: none waits for another

    def cards(self) -> list[Card]:
        """Return the latest runs; those that would take too long to read, by name alone."""
        end = time.monotonic() + LIST_SECONDS
        return [
            self._card(name) if time.monotonic() < end else Card(name, progress="not read yet")
            for name in run_names(self.root)[:SHOWN_RUNS]
        ]

    def report(self, name: str) -> Report:
        """Return the report of a run as it is now, or was a few seconds ago."""
        folder = RunFolder(run_folder(self.root, name))
        written = folder.report.stat() if folder.report.is_file() else None
        signature = None if written is None else (written.st_mtime_ns, written.st_size)
        with self._lock(name):
            known = self._reports.get(name)
            if known is not None and known[0] == signature:
                _, read, report = known
                age = time.monotonic() - read
                if age < FRESH_SECONDS or (signature is not None and _is_over(report)):
                    return report
            report = Report.from_run(folder.path, self.registry)
            self._reports[name] = (signature, time.monotonic(), report)
            return report

    def live(self, name: str) -> dict[str, Any]:
        """Return how far a run is, in JSON types."""
        with self._lock(name):
            look = self._watched(name).look()
        return {
            "status": (look.line or f"{look.over} of {look.total} over, {look.won}").removeprefix(
                "mle-bench: "
            ),
            "over": look.over >= look.total,
            "running": [_attempt(one) for one in look.running[:SHOWN_ATTEMPTS]],
            "more": max(0, len(look.running) - SHOWN_ATTEMPTS),
        }

    def plan(self, name: str) -> Plan:
        """Return the plan of a run."""
        return read_plan(RunFolder(run_folder(self.root, name)))

    def _lock(self, name: str) -> threading.RLock:
        return self._locks.setdefault(name, threading.RLock())

    def _watched(self, name: str) -> RunProgress:
        folder = RunFolder(run_folder(self.root, name))
        known = self._progress.setdefault(name, RunProgress(folder, ()))
        known.expected = read_plan(folder).expected  # a session that resumes may add to it
        return known

    def _card(self, name: str) -> Card:
        try:
            plan, report = self.plan(name), self.report(name)
            live = self.live(name)
        except (ConfigError, OSError, ValueError) as problem:
            return Card(name, problem=f"cannot be read: {problem}")
        costs = report.costs
        return Card(
            name=name,
            agent=report.disclosure.agent or plan.agent,
            splits=", ".join((*plan.splits, *plan.competitions)),
            seeds=plan.seeds,
            progress=live["status"],
            rates=tuple((row.name, row.rates["any_medal"].text()) for row in report.rates),
            cost=shown_usd(costs) if costs.has_figures else "",
        )


def _is_over(report: Report) -> bool:
    return all(result.status != "missing" for result in report.results)


def _attempt(one: AttemptProgress) -> dict[str, Any]:
    folder = AttemptFolder(one.folder)
    limit = "" if one.limit is None else f" of {show_duration(one.limit)}"
    return {
        "name": f"{one.competition} seed {one.seed}",
        "place": one.place,
        "time": f"{show_duration(max(1, round(one.elapsed)))}{limit}",
        "part": None if not one.limit else round(min(1.0, one.elapsed / one.limit), 4),
        "usage": [text for text in one.usage.texts.values() if text],
        "valid": one.submission_text,
        "spent": one.spent,
        "snapshots": _count(folder.snapshots),
        "curves": [
            {"points": c.points, "label": c.label} for c in usage_curves(read_usage(folder.stats))
        ],
        "log": tail_lines(folder.log, lines=TAIL_LINES, width=TAIL_COLUMNS),
    }


def _count(folder: Path) -> int:
    if folder.is_symlink() or not folder.is_dir():
        return 0
    return sum(1 for _ in itertools.islice(folder.iterdir(), 1000))


def compared(runs: Runs, names: Sequence[str]) -> dict[str, Report]:
    """Return the reports of some runs, each once."""
    return {name: runs.report(name) for name in dict.fromkeys(names)}
