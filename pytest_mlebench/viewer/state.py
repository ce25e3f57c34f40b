"""What the viewer shows of runs, read from disk in bounded time and kept until it changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_mlebench.attempts.plan import Plan, read_plan
from pytest_mlebench.attempts.run_progress import ProgressLook, RunProgress, signature
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.cost_text import shown_usd
from pytest_mlebench.reports.page.page import render
from pytest_mlebench.reports.report import Report
from pytest_mlebench.viewer.attempt_rows import attempt_card, attempt_row
from pytest_mlebench.viewer.served_files import run_folder, run_names

SHOWN_RUNS = 200
LIST_SECONDS = 3.0  # that reading runs for the list may take; the rest are read for the next event
SHOWN_CARDS = 32  # attempts that run at the same time
SHOWN_ROWS = 200  # attempts of a page of the table
LOOK_SECONDS = 1.0  # for which one look at a run is good enough for everybody who watches it
FRESH_SECONDS = 10.0  # for which a report of a run that goes on is good enough
FRESH_RATIO = 20.0  # and for how many times as long as it took to read


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


@dataclass(frozen=True)
class ReadReport:
    """A report, what it was read from, and for how long it is good enough."""

    report: Report
    files: tuple[object, ...]  # signatures
    good_until: float

    @property
    def is_final(self) -> bool:
        """Tell whether nothing is missing in it."""
        return all(result.status != "missing" for result in self.report.results)


class Runs:
    """The runs of a folder; from any thread."""

    def __init__(self, root: Path, registry: Registry) -> None:
        self.root = root
        self.registry = registry
        self._reports: dict[str, ReadReport] = {}
        self._pages: dict[str, tuple[Report, str]] = {}
        self._progress: dict[str, RunProgress] = {}
        self._plans: dict[str, tuple[object, Plan]] = {}
        self._looks: dict[str, tuple[float, ProgressLook]] = {}
        self._locks: dict[str, threading.RLock] = {}  # one for each run: none waits for another

    def cards(self) -> list[Card]:
        """Return the latest runs; those that would take too long to read, by name alone."""
        end = time.monotonic() + LIST_SECONDS
        return [
            self._card(name) if time.monotonic() < end else Card(name, progress="not read yet")
            for name in run_names(self.root)[:SHOWN_RUNS]
        ]

    def list(self) -> dict[str, Any]:
        """Return the latest runs in JSON types."""
        return {"cards": [asdict(card) for card in self.cards()], "over": False}

    def report(self, name: str) -> Report:
        """Return the report of a run as it is now, or was a few seconds ago."""
        folder = RunFolder(run_folder(self.root, name))
        files = tuple(map(signature, (folder.plan, folder.report, folder.audit)))
        with self._lock(name):
            known, began = self._reports.get(name), time.monotonic()
            is_same = known is not None and known.files == files
            if known is not None and is_same and (known.is_final or began < known.good_until):
                return known.report
            report = Report.from_run(folder.path, self.registry)
            took = time.monotonic() - began
            good = time.monotonic() + max(FRESH_SECONDS, FRESH_RATIO * took)
            self._reports[name] = ReadReport(report, files, good)
            return report

    def page(self, name: str) -> str:
        """Return the report of a run as a page, laid out once for each report."""
        report = self.report(name)
        with self._lock(name):
            known = self._pages.get(name)
            if known is None or known[0] is not report:
                known = self._pages[name] = (report, render(report, self.root / name))
            return known[1]

    def live(self, name: str, page: int = 1) -> dict[str, Any]:
        """Return how far a run is and a page of its attempts, in JSON types."""
        look = self.look(name)
        with self._lock(name):
            runs = self._progress[name].runs
        pages = max(1, -(-len(runs) // SHOWN_ROWS))
        page = min(max(1, page), pages)
        rows = runs[(page - 1) * SHOWN_ROWS : page * SHOWN_ROWS]
        return {
            "status": _status(look),
            "over": look.over >= look.total,
            "running": [attempt_card(one) for one in look.running[:SHOWN_CARDS]],
            "more": max(0, len(look.running) - SHOWN_CARDS),
            "rows": [attempt_row(run, self.root / name) for run in rows],
            "page": page,
            "pages": pages,
        }

    def look(self, name: str) -> ProgressLook:
        """Return a run at this moment, or at one a second ago: one look is enough for all."""
        with self._lock(name):
            plan = self.plan(name)
            taken, look = self._looks.get(name, (0.0, None))
            if look is None or time.monotonic() - taken >= LOOK_SECONDS:
                folder = RunFolder(run_folder(self.root, name))
                progress = self._progress.setdefault(name, RunProgress(folder, ()))
                progress.expected = plan.expected  # a session that resumes may add to it
                look = progress.look()
                self._looks[name] = (time.monotonic(), look)
            return look

    def plan(self, name: str) -> Plan:
        """Return the plan of a run, read again when it has changed."""
        folder = RunFolder(run_folder(self.root, name))
        now = signature(folder.plan)
        with self._lock(name):
            known = self._plans.get(name)
            if known is None or known[0] != now:
                known = self._plans[name] = (now, read_plan(folder))
            return known[1]

    def _lock(self, name: str) -> threading.RLock:
        return self._locks.setdefault(name, threading.RLock())

    def _card(self, name: str) -> Card:
        try:
            plan, report = self.plan(name), self.report(name)
            look = self.look(name)
        except (ConfigError, OSError, ValueError) as problem:
            return Card(name, problem=f"cannot be read: {problem}")
        costs = report.costs
        return Card(
            name=name,
            agent=report.disclosure.agent or plan.agent,
            splits=", ".join((*plan.splits, *plan.competitions)),
            seeds=plan.seeds,
            progress=_status(look),
            rates=tuple((row.name, row.rates["any_medal"].text()) for row in report.rates),
            cost=shown_usd(costs) if costs.has_figures else "",
        )


def compared(runs: Runs, names: Sequence[str]) -> dict[str, Report]:
    """Return the reports of some runs, each once."""
    return {name: runs.report(name) for name in dict.fromkeys(names)}


def _status(look: ProgressLook) -> str:
    line = look.line or f"{look.over} of {look.total} over, {look.won}"
    return line.removeprefix("mle-bench: ")
