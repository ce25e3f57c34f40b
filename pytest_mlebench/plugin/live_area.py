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
from io import StringIO
from typing import TYPE_CHECKING, Any, TextIO

from pytest_mlebench._units import show_duration

if TYPE_CHECKING:
    import pytest

    from pytest_mlebench.attempts.progress import AttemptProgress, ProgressLook, RunProgress
    from pytest_mlebench.reports.results import ItemKey, Result

EVERY_SECONDS = 1.0
MIN_COLUMNS, MIN_LINES = 30, 8  # of a terminal that has room for an area
BAR = 10  # columns
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

    def finished(self, key: ItemKey, result: Result) -> None:
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


def area_lines(look: ProgressLook, columns: int, height: int) -> list[str]:
    """Return the lines of the area, none wider than *columns*, no more than *height*."""
    from rich.console import Console  # late on purpose: only on a terminal
    from rich.table import Table
    from rich.text import Text

    shown = look.running[: max(1, height - 2)]
    table = Table.grid(padding=(0, 1), expand=False)
    wide = _columns_for(columns)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(12, columns // 3))
    for name in wide:
        table.add_column(no_wrap=True, justify="right" if name != "line" else "left")
    for one in shown:
        cells = {"bar": _bar(one), **_cells(one)}
        table.add_row(
            Text(f"{one.competition} seed{one.seed}", style="bold"),
            *(Text(cells[name], style="dim" if name == "line" else "") for name in wide),
        )
    out = StringIO()
    console = Console(
        file=out, width=columns, force_terminal=True, color_system="standard", highlight=False
    )
    console.print(table, no_wrap=True, crop=True, overflow="ellipsis")
    if len(look.running) > len(shown):
        console.print(Text(f"… and {len(look.running) - len(shown)} more", style="dim"))
    status = (look.line or "").removeprefix("mle-bench: ")
    console.print(Text(status, style="cyan", no_wrap=True, overflow="ellipsis"), crop=True)
    return out.getvalue().rstrip("\n").split("\n")


def _columns_for(columns: int) -> list[str]:
    """Return which cells a terminal has room for."""
    needed = {"bar": 40, "valid": 70, "memory": 80, "spent": 90, "cpus": 100, "gpu": 110}
    needed |= {"place": 120, "line": 130}
    return [name for name, width in needed.items() if columns >= width]


def _cells(one: AttemptProgress) -> dict[str, str]:
    valid = {True: "valid", False: "not valid yet", None: ""}[one.valid]
    return {
        "valid": valid,
        **one.usage.texts,
        "spent": one.spent,
        "place": one.place[:24],
        "line": one.last_line,
    }


def _bar(one: AttemptProgress) -> str:
    elapsed = show_duration(max(1, round(one.elapsed)))
    if one.limit is None:
        return elapsed
    full = min(BAR, int(BAR * one.elapsed / one.limit))
    return f"{elapsed} {'█' * full}{'░' * (BAR - full)} {show_duration(one.limit)}"


def _column_after(text: str, column: int) -> int:
    """Return where the cursor is after a text; colours take no room."""
    from rich.cells import cell_len  # late on purpose: only on a terminal
    from rich.text import Text

    _, newline, last = text.rpartition("\n")
    start = 0 if newline else column
    if "\r" in last:
        start, last = 0, last.rpartition("\r")[2]
    return start + cell_len(Text.from_ansi(last).plain) if last else start
