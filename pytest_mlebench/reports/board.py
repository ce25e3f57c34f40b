"""The published results of MLE-bench, and the place of a run among them."""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_mlebench._plain_text import one_line
from pytest_mlebench._units import parse_duration
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.registry import BENCHMARK
from pytest_mlebench.reports.membership import ALL
from pytest_mlebench.reports.summary import WIDTH, Line, cut

if TYPE_CHECKING:
    from pytest_mlebench.reports.report import Report

FILE = Path(__file__).parent / "published.csv"  # as of April 2026, when submissions were closed
SPLITS = (*BENCHMARK, ALL)
STANDARD_HOURS = 24
NORMAL_QUANTILE = 1.96  # the interval of a published mean: how many seeds it has is not published
NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True)
class BoardRate:
    """An any-medal rate in percent, with its standard error and its 95 % interval."""

    mean: float
    sem: float | None
    interval: tuple[float, float]

    @property
    def text(self) -> str:
        """Return ``62.12 ±1.52``, or the mean alone where there is no standard error."""
        return f"{self.mean:.2f}" if self.sem is None else f"{self.mean:.2f} ±{self.sem:.2f}"


@dataclass(frozen=True)
class BoardEntry:
    """A row of the board: a published result, or a run of one's own."""

    agent: str
    llms: str
    rates: dict[str, BoardRate]  # by split; what is not whole is not there
    hours: float | None
    date: str
    remarks: tuple[str, ...] = ()
    is_own: bool = False

    @property
    def is_ranked(self) -> bool:
        """Tell whether the entry takes part in the ranking."""
        return NOT_COMPARABLE not in " ".join(self.remarks)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry in JSON types."""
        return {
            "agent": self.agent,
            "llms": self.llms,
            "hours": self.hours,
            "date": self.date,
            "remarks": list(self.remarks),
            "own": self.is_own,
            **{
                split: {"mean": rate.mean, "sem": rate.sem, "interval": list(rate.interval)}
                for split, rate in self.rates.items()
            },
        }


@dataclass(frozen=True)
class BoardPlace:
    """Where a run stands in one split."""

    split: str
    rate: BoardRate
    rank: int
    of: int  # ranked entries, the run's own included
    alike: int  # entries whose interval overlaps the run's

    @property
    def sentence(self) -> str:
        """Return the place for people."""
        low, high = self.rate.interval
        return (
            f"{self.split}: {self.rate.text} (95 % interval {low:.2f}-{high:.2f}), place "
            f"{self.rank} of {self.of}; the intervals of {self.alike} others overlap"
        )


def read_board() -> tuple[BoardEntry, ...]:
    """Return the published results."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return tuple(_published(row) for row in csv.DictReader(file))


def entry_of(report: Report) -> BoardEntry:
    """Return a run as a row: the splits that it has whole, its conditions as remarks."""
    report.require_one_agent("a place on the board")
    disclosure = report.disclosure
    rates = {
        row.name: BoardRate(medal.mean, medal.sem, medal.interval)
        for row in report.rates
        if row.name in SPLITS and row.is_whole and (medal := row.rates["any_medal"])
    }
    return BoardEntry(
        agent=disclosure.agent or "this run",
        llms=", ".join(disclosure.llms) or "not stated",
        rates=rates,
        hours=_hours(disclosure.limits.get("time")),
        date=report.created[:10],
        remarks=report.comparability.reasons,
        is_own=True,
    )


def ranking(entries: Sequence[BoardEntry], split: str) -> list[tuple[int | None, BoardEntry]]:
    """Return the entries that have a split, the best first, each with its rank if it has one."""
    having = [entry for entry in entries if split in entry.rates]
    having.sort(key=lambda entry: -entry.rates[split].mean)
    ranked = [entry for entry in having if entry.is_ranked]
    return [(_rank(entry, ranked, split) if entry.is_ranked else None, entry) for entry in having]


def places(own: BoardEntry, entries: Sequence[BoardEntry]) -> list[BoardPlace]:
    """Return the places of a run in the splits that it has."""
    found = []
    for split in SPLITS:
        if (rate := own.rates.get(split)) is None:
            continue
        others = [entry for entry in entries if entry.is_ranked and split in entry.rates]
        alike = sum(_overlap(rate, entry.rates[split]) for entry in others)
        rank = _rank(own, [*others, own], split)
        found.append(BoardPlace(split, rate, rank, len(others) + 1, alike))
    return found


def board_lines(entries: Sequence[BoardEntry], split: str = ALL) -> list[Line]:
    """Return the board for a terminal, sorted by a split; remarks are below their row."""
    head = f"{'':>3} {'agent':<21}{'low':>8}{'medium':>8}{'high':>8}{'all':>13}{'hours':>6}  date"
    lines = [Line(head, {"bold": True})]
    for rank, entry in ranking(entries, split):
        cells = [_cell(entry, name, name == ALL) for name in SPLITS]
        hours = "?" if entry.hours is None else f"{entry.hours:g}"
        text = f"{rank or '-':>3} {cut(one_line(entry.agent), 20):<21}{cells[0]:>8}{cells[1]:>8}"
        text += f"{cells[2]:>8}{cells[3]:>13}{hours:>6}  {entry.date}"
        lines.append(Line(text, {"bold": entry.is_own, "green": entry.is_own}))
        lines += [Line(line) for line in _below(entry)]
    return lines


def board_svg(own: BoardEntry, entries: Sequence[BoardEntry]) -> str:
    """Return the board as a picture: a dot and an interval for each entry of the widest split."""
    split = next((name for name in reversed(SPLITS) if name in own.rates), None)
    if split is None:
        return ""
    rows = ranking([*entries, own], split)
    height = 18 * len(rows) + 24
    parts = [
        f'<svg class="board" viewBox="0 0 760 {height}" width="760" height="{height}" role="img" '
        'font-size="11" font-family="sans-serif">',
        f"<title>any-medal rate on {split}, in percent, among the published results</title>",
    ]
    parts += [
        f'<line x1="{_x(tick)}" x2="{_x(tick)}" y1="4" y2="{height - 18}" class="grid"/>'
        f'<text x="{_x(tick)}" y="{height - 4}" text-anchor="middle" class="tick">{tick}</text>'
        for tick in range(0, 101, 20)
    ]
    parts += [_svg_row(18 * n + 14, rank, entry, split) for n, (rank, entry) in enumerate(rows)]
    return "\n".join([*parts, "</svg>"])


def _hours(time: str | None) -> float | None:
    """Return a time limit in hours, if attempts had one and the same."""
    try:
        return None if time is None else parse_duration(time, "time") / 3600
    except ConfigError:  # several, or what a file says
        return None


def _published(row: dict[str, str]) -> BoardEntry:
    rates = {}
    for split in SPLITS:
        mean, sem = float(row[split]), float(row[f"{split}_sem"])
        half_width = NORMAL_QUANTILE * sem
        rates[split] = BoardRate(
            mean, sem, (max(0, mean - half_width), min(100, mean + half_width))
        )
    hours = float(row["hours"])
    remarks = [f"{hours:g} hours instead of {STANDARD_HOURS}"] if hours != STANDARD_HOURS else []
    remarks += ["models undisclosed"] if row["llm"] == "undisclosed" else []
    remarks += [row["note"]] if row["note"] else []
    return BoardEntry(row["agent"], row["llm"], rates, hours, row["date"], tuple(remarks))


def _rank(entry: BoardEntry, ranked: Sequence[BoardEntry], split: str) -> int:
    """Return a rank by means as they are published, with two decimals."""
    mean = round(entry.rates[split].mean, 2)
    return 1 + sum(round(other.rates[split].mean, 2) > mean for other in ranked)


def _overlap(left: BoardRate, right: BoardRate) -> bool:
    return left.interval[0] <= right.interval[1] and right.interval[0] <= left.interval[1]


def _cell(entry: BoardEntry, split: str, with_error: bool) -> str:
    rate = entry.rates.get(split)
    if rate is None:
        return "-"
    return rate.text if with_error else f"{rate.mean:.2f}"


def _below(entry: BoardEntry) -> list[str]:
    """Return the models and the remarks of an entry, on lines below it."""
    text = "; ".join([one_line(entry.llms), *entry.remarks])
    return textwrap.wrap(text, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)


def _x(percent: float) -> float:
    return round(290 + 4.5 * percent, 1)


def _svg_row(y: int, rank: int | None, entry: BoardEntry, split: str) -> str:
    rate = entry.rates[split]
    kind = "own" if entry.is_own else "ranked" if entry.is_ranked else "unranked"  # in style.css
    name = escape(cut(f"{rank or '-'} {one_line(entry.agent)} ({one_line(entry.llms)})", 46))
    remarks = "; ".join((f"{entry.agent}: {rate.text}", *entry.remarks))
    low, high = rate.interval
    return (
        f"<g><title>{escape(remarks)}</title>"
        f'<text x="4" y="{y + 4}" class="name {kind}">{name}</text>'
        f'<line x1="{_x(low)}" x2="{_x(high)}" y1="{y}" y2="{y}" class="{kind}" '
        f'stroke-width="2"/><circle cx="{_x(rate.mean)}" cy="{y}" r="4" class="{kind}"/></g>'
    )
