"""A live area below what pytest writes: a row for each running attempt, gone without a trace.

The cursor always rests where pytest left it; the area is drawn below and wiped before pytest writes
again. So pytest's own line may be half finished above it. ``rich`` lays the rows out; its ``Live``
would need the cursor at the beginning of a line, which pytest does not leave it at.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, TextIO

from pytest_mlebench.plugin.live_rows import area_lines

if TYPE_CHECKING:
    import pytest

    from pytest_mlebench.attempts.run_progress import ProgressLook, RunProgress
    from pytest_mlebench.reports.results import ItemKey, Result

EVERY_SECONDS = 1.0
MIN_COLUMNS, MIN_LINES = 30, 8  # of a terminal that has room for an area
# ECMA-48: erase from the cursor to the end of the screen; erase the line; up; to a column
_WIPE, _CLEAR, _UP, _COLUMN = "\x1b[J", "\x1b[2K", "\x1b[{}A", "\x1b[{}G"
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"  # DECAWM: a line that is too wide must not become two


class LiveArea:
    """A thread that draws, and stand-ins for the files that others write to meanwhile."""

    writes_lines = False

    def __init__(
        self, reporter: pytest.TerminalReporter, progress: RunProgress, out: TextIO
    ) -> None:
        self.reporter = reporter
        self.progress = progress
        self.column = 0  # of the cursor, as far as what was written tells
        self._out = out
        self._drawn = False
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._paused = False
        self._thread = threading.Thread(target=self._watch, name="mlebench-live", daemon=True)
        self._replaced: list[tuple[Any, str, Any]] = []

    def start(self) -> None:
        """Begin to draw."""
        writer = self.reporter._tw
        self.column = writer.width_of_current_line
        self._replace(writer, "_file")
        if self.reporter.config.getoption("capture") == "no":  # tests write to the terminal, too
            self._replace(sys, "stdout")
            self._replace(sys, "stderr")
        self._thread.start()

    def stop(self) -> None:
        """Wipe the area and leave everything as it was."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join(timeout=5)
        with self._lock:
            self.wipe()
            for holder, name, file in self._replaced:
                setattr(holder, name, file)
            self._out.close()

    def pause(self) -> None:
        """Leave the terminal to a debugger."""
        with self._lock:
            self._paused = True
            self.wipe()

    def resume(self) -> None:
        """Draw again."""
        self._paused = False

    def finished(self, key: ItemKey, result: Result, reason: str | None) -> None:
        """Do nothing: the next look at the run tells."""

    def write(self, file: Any, text: str) -> int:
        """Write what somebody else has to say, and note where that leaves the cursor."""
        with self._lock:
            self.wipe()
            written: int = file.write(text)
            with contextlib.suppress(OSError, ValueError):
                file.flush()
            self.column = _column_after(text, self.column)
            return written

    def wipe(self) -> None:
        """Remove the area, if it is there."""
        with self._lock:
            if self._drawn:
                self._put(_WIPE)
                self._drawn = False

    def _watch(self) -> None:
        while not self._stop.wait(EVERY_SECONDS):
            if not self._paused:
                self._draw(self.progress.look())

    def _draw(self, look: ProgressLook) -> None:
        columns, height = self._size()
        with self._lock:
            if self._stop.is_set() or self._paused:
                return
            self.wipe()
            if columns < MIN_COLUMNS or height < MIN_LINES or look.over >= look.total:
                return
            lines = area_lines(look, columns - 1, height - 4)
            body = "".join(f"\n{_CLEAR}{line}" for line in lines)
            back = _UP.format(len(lines)) + _COLUMN.format(self.column % columns + 1)
            self._put(f"{_NO_WRAP}{body}{back}{_WRAP}")
            self._drawn = True

    def _put(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # the terminal is gone
            self._out.write(text)
            self._out.flush()

    def _size(self) -> tuple[int, int]:
        try:
            size = os.get_terminal_size(self._out.fileno())
        except OSError:
            return 0, 0
        return size.columns, size.lines

    def _replace(self, holder: Any, name: str) -> None:
        file = getattr(holder, name)
        self._replaced.append((holder, name, file))
        setattr(holder, name, _Guarded(file, self))


class _Guarded:
    """A file that wipes the area before anything is written to it."""

    def __init__(self, file: Any, area: LiveArea) -> None:
        self._file = file
        self._area = area

    def write(self, text: str) -> int:
        return self._area.write(self._file, text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _column_after(text: str, column: int) -> int:
    """Return where the cursor is after a text; colours take no room."""
    from rich.cells import cell_len  # late on purpose: only on a terminal
    from rich.text import Text

    _, newline, last = text.rpartition("\n")
    start = 0 if newline else column
    if "\r" in last:
        start, last = 0, last.rpartition("\r")[2]
    return start + cell_len(Text.from_ansi(last).plain) if last else start
