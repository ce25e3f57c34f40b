"""The rows of the live area: as many facts of each running attempt as a terminal has room for."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING

from pytest_mlebench._units import show_duration

if TYPE_CHECKING:
    from rich.text import Text

    from pytest_mlebench.attempts.run_progress import AttemptProgress, ProgressLook

LONG_BAR, SHORT_BAR = 10, 4  # blocks
MIN_NAME, MIN_LINE, MIN_PLACE = 14, 10, 12  # columns, where a cell has more to show
HOUR = 3600  # seconds, after which none are shown
STATUS_LINES = 2  # at most, where a terminal is narrow
# cells from left to right, and in the order in which they are given room
SHOWN = ("name", "seed", "bar", "memory", "valid", "spent", "cpus", "gpu", "place", "line")
WANTED = ("seed", "bar", "memory", "valid", "spent", "place", "line", "cpus", "gpu")
GROWING = ("name", "bar", "place", "line")  # what is left over goes to these, in this order
SHORTEST = {"name": MIN_NAME, "place": MIN_PLACE, "line": MIN_LINE}
LEFT = ("name", "place", "line")  # the other cells are aligned to the right
STYLES = {"name": "bold", "seed": "bold", "line": "dim"}


def area_lines(look: ProgressLook, columns: int, height: int) -> list[str]:
    """Return the lines of the area, none wider than *columns*, no more than *height*."""
    from rich.console import Console  # late on purpose: only on a terminal
    from rich.text import Text

    sentence = (look.line or "").removeprefix("mle-bench: ")
    status = textwrap.wrap(sentence, columns, max_lines=STATUS_LINES, placeholder=" …")
    room = max(1, height - len(status))
    shown = look.running if len(look.running) <= room else look.running[: max(1, room - 1)]
    lines = row_texts(shown, columns)
    if more := len(look.running) - len(shown):
        lines.append(Text(f"… and {more} more", style="dim"))
    lines += [Text(line, style="cyan") for line in status]
    out = StringIO()
    console = Console(
        file=out, width=columns, force_terminal=True, color_system="standard", highlight=False
    )
    for line in lines[:height]:
        line.truncate(columns, overflow="ellipsis")
        console.print(line, no_wrap=True, crop=True)
    return out.getvalue().rstrip("\n").split("\n")


def row_texts(running: Sequence[AttemptProgress], columns: int) -> list[Text]:
    """Return a row for each attempt, their cells below one another."""
    from rich.text import Text  # late on purpose: only on a terminal

    cells = [_cells(one, SHORT_BAR) for one in running]
    full = [_cells(one, LONG_BAR) for one in running]
    widths = cell_widths(cells, full, columns)
    rows = []
    for short, long in zip(cells, full, strict=True):
        row = Text()
        for name, width in widths.items():
            text = long[name] if _width(long[name]) <= width else short[name]
            cell = Text(text, style=STYLES.get(name, ""))
            cell.truncate(width, overflow="ellipsis")
            cell.align("left" if name in LEFT else "right", width)
            row.append(" " if row else "").append_text(cell)
        row.rstrip()
        rows.append(row)
    return rows


def cell_widths(
    cells: Sequence[dict[str, str]], full: Sequence[dict[str, str]], columns: int
) -> dict[str, int]:
    """Return the columns that each cell gets, from left to right; what does not fit gets none."""
    needed, natural = _widest(cells), _widest(full)
    needed = {name: min(width, SHORTEST.get(name, width)) for name, width in needed.items()}
    given = {"name": min(needed["name"], columns)}
    left = columns - given["name"]
    for name in WANTED:
        if needed[name] and needed[name] + 1 <= left:
            given[name] = needed[name]
            left -= needed[name] + 1
    for name in GROWING:
        if name in given:
            more = min(left, natural[name] - given[name])
            more = 0 if name == "bar" and more < natural[name] - given[name] else max(0, more)
            given[name] += more
            left -= more
    return {name: given[name] for name in SHOWN if name in given}


def _cells(one: AttemptProgress, blocks: int) -> dict[str, str]:
    return {
        "name": one.competition,
        "seed": f"seed{one.seed}",
        "bar": _bar(one, blocks),
        "valid": one.submission_text,
        **one.usage.texts,
        "spent": one.spent,
        "place": one.place,
        "line": one.last_line,
    }


def _bar(one: AttemptProgress, blocks: int) -> str:
    exact = max(1, round(one.elapsed))
    elapsed = show_duration(exact if exact < HOUR else exact - exact % 60)
    if one.limit is None:
        return elapsed
    full = min(blocks, int(blocks * one.elapsed / one.limit))
    return f"{elapsed} {'█' * full}{'░' * (blocks - full)} {show_duration(one.limit)}"


def _widest(cells: Sequence[dict[str, str]]) -> dict[str, int]:
    return {name: max((_width(one[name]) for one in cells), default=0) for name in SHOWN}


def _width(text: str) -> int:
    from rich.cells import cell_len  # late on purpose: only on a terminal

    return cell_len(text)
