"""LiveStatus while attempts run: how many run and are over, medals so far, time left."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, TextIO

from pytest_mlebench._units import show_duration
from pytest_mlebench.attempts.live_spending import LiveSpending
from pytest_mlebench.attempts.record import Run, read_attempts
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.medals import Medal

if TYPE_CHECKING:
    import pytest

    from pytest_mlebench.reports.results import ItemKey

FIRST = 3.0  # seconds before the first line
ON_TERMINAL = 30.0  # seconds between lines where a person looks
IN_LOG = 300.0  # and where a log is written


class LiveStatus:
    """A thread that reads the run's records now and then and prints a line."""

    def __init__(
        self,
        reporter: pytest.TerminalReporter,
        folder: RunFolder,
        expected: Collection[ItemKey],
    ) -> None:
        self.reporter = reporter
        self.folder = folder
        self.expected = expected
        self.began = time.time()
        self._out = _open(reporter)
        self._spending = LiveSpending()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="mlebench-progress", daemon=True)

    def start(self) -> None:
        """Begin to watch, if there is anything to write to."""
        if self._out is not None:
            self._thread.start()

    def stop(self) -> None:
        """Stop watching."""
        self._stop.set()
        if self._out is not None:
            self._thread.join(timeout=5)
            self._out.close()

    def _watch(self) -> None:
        pause = FIRST
        while not self._stop.wait(pause):
            pause = ON_TERMINAL if self.reporter.isatty else IN_LOG
            runs = self._runs()
            line = progress_line(
                runs, len(self.expected), self.began, time.time(), self._spending.text(runs)
            )
            if line is not None and not self._stop.is_set():
                self._write(line)

    def _write(self, line: str) -> None:
        if self._out is not None:
            # the reporter may stand in the middle of a line of letters: it begins a new one
            start = "\n" if self.reporter.currentfspath else ""
            self.reporter.currentfspath = None
            self._out.write(f"{start}{line}\n")
            self._out.flush()

    def _runs(self) -> list[Run]:
        wanted = {(key.competition, key.seed) for key in tuple(self.expected)}
        found = (read_attempts(folder) for folder in self.folder.seeds())
        latest = [runs[-1] for runs in found if runs]
        return [run for run in latest if (run.competition, run.seed) in wanted]


def _open(reporter: pytest.TerminalReporter) -> TextIO | None:
    """Return the terminal as it is outside of a test, whose output pytest captures."""
    try:
        return os.fdopen(os.dup(reporter._tw._file.fileno()), "w", encoding="utf-8")
    except (OSError, ValueError):  # what the reporter writes to is no file
        return None


def progress_line(
    runs: list[Run], total: int, began: float, now: float, spent: str | None = None
) -> str | None:
    """Return a line on the attempts of a run, or None once all are over."""
    graded = [run for run in runs if run.phase == "graded" and run.grade is not None]
    running = [run for run in runs if run.phase in ("created", "running")]
    queued = len([run for run in runs if run.phase == "waiting"])
    over = len([run for run in runs if run.phase in ("collected", "graded", "error")])
    if over >= total:
        return None
    medals = Counter(run.grade.medal for run in graded if run.grade is not None)
    won = ", ".join(
        f"{medals[medal]} {medal}" for medal in reversed(Medal) if medal and medals[medal]
    )
    waiting = [f"{queued} waiting for CPUs, memory or GPUs"] if queued else []
    parts = [f"{len(running)} running", *waiting, f"{over} of {total} over", won or "no medal yet"]
    if spent is not None:
        parts.append(spent)
    if (left := _time_left(runs, running, total, began, now)) is not None:
        parts.append(f"about {show_duration(left)} left")
    return f"mle-bench: {', '.join(parts)}"


def _time_left(
    runs: list[Run], running: list[Run], total: int, began: float, now: float
) -> float | None:
    """Return an estimate from the attempts of this session that are over."""
    lasted = [
        run.record.timings["collected"] - run.record.timings["running"]
        for run in runs
        if "collected" in run.record.timings and run.record.timings.get("running", 0) >= began
    ]
    if not lasted:
        return None
    mean = sum(lasted) / len(lasted)
    spent = sum(min(mean, now - run.record.timings.get("running", now)) for run in running)
    over = [run for run in runs if run.phase not in ("created", "waiting", "running")]
    return max(1.0, round((mean * (total - len(over)) - spent) / max(1, len(running))))
