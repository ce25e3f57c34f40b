"""Progress in a log: a line for each attempt that is over, and one after ten minutes of silence.

On GitHub Actions the lines are a group, and every failure is an annotation.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, TextIO

from pytest_mlebench._plain_text import one_line
from pytest_mlebench._units import show_duration, show_score, show_usd

if TYPE_CHECKING:
    import pytest

    from pytest_mlebench.attempts.run_progress import RunProgress
    from pytest_mlebench.reports.results import ItemKey, Result

SILENCE_SECONDS = 600.0
MAX_ANNOTATION = 1000  # letters


class LogLines:
    """Writes whole lines without control characters."""

    writes_lines = True

    def __init__(
        self, reporter: pytest.TerminalReporter, progress: RunProgress, out: TextIO
    ) -> None:
        self.reporter = reporter
        self.progress = progress
        self.grouped = on_github()
        self._out = out
        self._over: set[ItemKey] = set()
        self._last = time.monotonic()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="mlebench-progress", daemon=True)

    def start(self) -> None:
        """Begin to watch for silence."""
        if self.grouped:
            self._write("::group::MLE-bench attempts")
        self._thread.start()

    def stop(self) -> None:
        """Stop, and close the group."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join(timeout=5)
        if self.grouped:
            self._write("::endgroup::")
        self._out.close()

    def pause(self) -> None:
        """Do nothing: lines disturb nobody."""

    def resume(self) -> None:
        """Do nothing."""

    def finished(self, key: ItemKey, result: Result, reason: str | None) -> None:
        """Write the line of an attempt that is over; a failed item is an annotation, too."""
        self._over.add(key)
        look = self.progress.look()
        over = f"{len(self._over)}/{max(len(self._over), look.total)}"
        running = f"({len(look.running)} running)" if look.running else ""
        self._write("  ".join(filter(None, (over, finished_text(result), running))))
        if self.grouped and reason is not None:
            self._write(annotation(result, reason))

    def _watch(self) -> None:
        while not self._stop.wait(max(1.0, self._last + SILENCE_SECONDS - time.monotonic())):
            silent = time.monotonic() - self._last >= SILENCE_SECONDS
            if silent and (line := self.progress.look().line) is not None:
                self._write(line)

    def _write(self, line: str) -> None:
        with self._lock:
            # the reporter may stand in the middle of a line, of -v or of tests of one's own
            writer = self.reporter._tw
            start = "\n" if writer.width_of_current_line else ""
            writer._current_line = ""
            self.reporter.currentfspath = None
            self._out.write(f"{start}{line}\n")
            self._out.flush()
            self._last = time.monotonic()


def finished_text(result: Result) -> str:
    """Return ``spooky-author-identification seed0  gold  0.16201  in 41m  $4.87``."""
    word = str(result.medal) if result.medal else "no medal"
    if not result.valid:
        word = f"{result.status}: {result.failure}" if result.failure else result.status
    score = None if result.grade is None else result.grade.score
    seconds = result.agent_seconds
    usd = None if result.model_use is None else result.model_use.known_usd
    parts = (
        f"{result.competition} seed{result.seed}",
        word,
        "" if score is None else show_score(score),
        "" if seconds is None else f"in {_about(seconds)}",
        "" if usd is None else show_usd(usd),
    )
    return "  ".join(filter(None, parts))


def on_github() -> bool:
    """Tell whether this is a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def annotation(result: Result, reason: str) -> str:
    """Return the workflow command that shows a failure beside the job.

    https://docs.github.com/actions/reference/workflow-commands-for-github-actions
    """
    kind = result.failure or ("below the bar" if result.valid else "failed")
    title = _escape(f"{result.competition} seed{result.seed}: {kind}")
    title = title.replace(":", "%3A").replace(",", "%2C")
    problem = one_line(result.problem or reason)[:MAX_ANNOTATION]
    return f"::error title={title}::{_escape(problem)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _about(seconds: float) -> str:
    return show_duration(max(0.1, seconds if seconds < 120 else 60 * round(seconds / 60)))
