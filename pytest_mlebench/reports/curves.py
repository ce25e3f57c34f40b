"""The curves of a report: what more attempts and less time give, per split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlebench.reports.attempts_curve import MIN_ATTEMPTS, CurvePoint, best_of_k, pass_at_k
from pytest_mlebench.reports.plots import Plot
from pytest_mlebench.reports.results import Result, named
from pytest_mlebench.reports.time_curve import MEASURES, quoted, time_curves

if TYPE_CHECKING:
    from pytest_mlebench.reports.report import Report


def plots_of(report: Report) -> list[Plot]:
    """Return the plots that a report has enough for."""
    chosen = dict(_selections(report))
    plots = []
    for name, title, curve in (
        ("pass-at-k", "Any medal in at least one of k attempts", pass_at_k),
        ("best-of-k", "Mean percentile of the best of k attempts", best_of_k),
    ):
        curves = {split: curve(results) for split, results in chosen.items()}
        enough = {split: one for split, one in curves.items() if len(one) >= MIN_ATTEMPTS}
        if enough:
            plots.append(Plot(name, title, "attempts", enough))
    over_time = {split: time_curves(results) for split, results in chosen.items()}
    for measure in MEASURES:
        points = {split: one[measure] for split, one in over_time.items() if one}
        if points:
            title = f"{measure.capitalize()} over time, by the submissions kept on the way"
            plots.append(Plot(_time_name(measure), title, "hours", points))
    return plots


@dataclass(frozen=True)
class TimeQuote:
    """What less time would have given on a split, for each measure that is followed over time."""

    split: str
    measure: str
    points: tuple[CurvePoint, ...]  # x is hours

    def at(self, hours: float) -> str:
        """Return the figure with its interval, or nothing where the attempts were over by then."""
        return next((point.text for point in self.points if point.x == hours), "")


def time_quotes(report: Report) -> Iterator[TimeQuote]:
    """Yield what 2, 8 and 24 hours would have given, as far as attempts lasted."""
    measures = {_time_name(measure): measure for measure in MEASURES}
    for plot in report.plots:
        for split, curve in plot.curves.items() if plot.name in measures else ():
            if points := quoted(curve):
                yield TimeQuote(split, measures[plot.name], tuple(points))


def write_plots(report: Report, path: Path) -> list[Path]:
    """Write every plot of a report beside *path*, as ``.svg`` and ``.csv``; return the files."""
    from pytest_mlebench._files import write_text

    written = []
    for plot in report.plots:
        for suffix, text in ((".svg", plot.svg()), (".csv", plot.csv())):
            file = path.with_name(f"{path.stem}-{plot.name}{suffix}")
            write_text(file, text)
            written.append(file)
    return written


def _time_name(measure: str) -> str:
    return f"time-{measure.replace(' ', '-')}"


def _selections(report: Report) -> Iterator[tuple[str, list[Result]]]:
    """Yield the results of every split, agent by agent."""
    several = len(report.blocks) > 1
    for row in report.rates:
        ids = report.membership.splits.get(row.name)
        block = next(
            block
            for block in report.blocks
            if (block[0].agent, block[0].conditions) == (row.agent, row.conditions)
        )
        inside = [result for result in block if ids is None or result.competition in ids]
        yield named(row, row.name, several=several), inside
