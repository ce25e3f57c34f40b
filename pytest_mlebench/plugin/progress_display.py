"""How progress is shown: live below pytest's line on a terminal, line by line in a log."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Protocol, TextIO

import pytest
from _pytest.terminal import TerminalReporter

from pytest_mlebench.attempts.run_progress import RunProgress
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.plugin.live_area import LiveArea
from pytest_mlebench.plugin.log_lines import LogLines
from pytest_mlebench.reports.results import ItemKey, Result


class Display(Protocol):
    """What shows progress while attempts run."""

    writes_lines: bool  # one for each attempt, in place of pytest's letters

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """End; more than once does no harm."""

    def pause(self) -> None:
        """Leave the terminal to somebody else."""

    def resume(self) -> None:
        """Take it back."""

    def finished(self, key: ItemKey, result: Result, reason: str | None) -> None:
        """Take note of an attempt that is over, and why its item failed, if it did."""


def display_for(
    reporter: pytest.TerminalReporter, folder: RunFolder, expected: Collection[ItemKey]
) -> Display | None:
    """Return what suits the place that pytest writes to; None where nothing does."""
    out = _open(reporter)
    if out is None:
        return None
    progress = RunProgress(folder, expected)
    if not out.isatty() or os.environ.get("CI", "").lower() in {"true", "1"}:
        reporter.showfspath = False  # a file's name would begin a line that nobody ends for hours
        reporter._show_progress_info = False
        return LogLines(reporter, progress, out)
    # another plugin's reporter draws on the terminal in its own way
    if os.environ.get("TERM") in {None, "", "dumb"} or type(reporter) is not TerminalReporter:
        out.close()
        return None
    return LiveArea(reporter, progress, out)


def _open(reporter: pytest.TerminalReporter) -> TextIO | None:
    """Return the terminal as it is outside of a test, whose output pytest captures."""
    try:
        return os.fdopen(os.dup(reporter._tw._file.fileno()), "w", encoding="utf-8")
    except (OSError, ValueError):  # what the reporter writes to is no file
        return None
