"""The competitions as the page shows them: a row for each, with all its attempts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlebench._plain_text import one_line
from pytest_mlebench._units import show_duration, show_score, show_size, show_tokens
from pytest_mlebench.reports.cost_text import shown_usd
from pytest_mlebench.reports.costs import Costs, costs_of
from pytest_mlebench.reports.page.attempt_view import (
    MAX_DETAILED,
    AttemptPlace,
    AttemptView,
    anchor_of,
    budget,
    curve_points,
    links,
    view_attempt,
)
from pytest_mlebench.reports.page.spread import Scored, Spread, draw_spread
from pytest_mlebench.reports.results import Result, named
from pytest_mlebench.reports.summary import LEAK_MARKS, result_letters

if TYPE_CHECKING:
    from pytest_mlebench.reports.report import Report


@dataclass(frozen=True)
class PageRow:
    """One competition with all its seeds."""

    name: str
    title: str
    url: str
    split: str
    split_place: int  # low, medium, high, then the others
    category: str
    issues: tuple[tuple[str, str], ...]  # kind, what
    leak: str  # known, suspected or nothing
    spread: Spread | None
    attempts: tuple[AttemptView, ...]
    medals: int
    points: int  # gold 3, silver 2, bronze 1
    score: float | None
    score_text: str
    percentile: float | None
    best: float | None  # percentile of its best attempt
    seconds: float | None
    memory: int | None
    gpus: str
    costs: Costs

    @property
    def mark(self) -> str:
        """Return the mark of a leak."""
        return LEAK_MARKS[self.leak]

    @property
    def medal_names(self) -> str:
        """Return the medals that occur, for the filter."""
        return " ".join(dict.fromkeys(attempt.medal for attempt in self.attempts))

    @property
    def outcomes(self) -> str:
        """Return the outcomes that occur, for the filter."""
        return " ".join(dict.fromkeys(attempt.outcome for attempt in self.attempts))

    @property
    def time_text(self) -> str:
        """Return the mean time of an attempt."""
        return "" if self.seconds is None else show_duration(_rounded(self.seconds))

    @property
    def tokens_text(self) -> str:
        """Return the tokens of all attempts together, where they were counted."""
        return show_tokens(self.costs.tokens) if self.costs.has_figures else ""

    @property
    def cost_text(self) -> str:
        """Return the dollars of all attempts together, where they were counted."""
        return shown_usd(self.costs) if self.costs.has_figures else ""

    @property
    def memory_text(self) -> str:
        """Return the highest memory of an attempt."""
        return "" if self.memory is None else show_size(self.memory)


def page_rows(report: Report, folder: Path | None) -> Iterator[PageRow]:
    """Yield a row for each competition of each agent, in the order of the splits."""
    taken: set[str] = set()
    count, shown = min(len(report.results), MAX_DETAILED), 0
    max_bytes, points = budget(count), curve_points(count)
    audited = {} if report.audit is None else {each.key: each for each in report.audit.attempts}
    for number, block in enumerate(report.blocks):
        groups: dict[str, list[Result]] = {}
        for result in block:
            groups.setdefault(result.competition, []).append(result)
        splits = {name: report.membership.benchmark_split(name) for name in groups}
        for name in sorted(groups, key=lambda name: (_place(splits[name], report), name)):
            group = sorted(groups[name], key=lambda result: result.seed)
            views = []
            for result in group:
                place = AttemptPlace(
                    anchor=anchor_of(result, number, taken),
                    split=splits[name],
                    category=report.membership.categories.get(name, "unknown"),
                    several=len(report.blocks) > 1,
                    folder=folder,
                    max_bytes=max_bytes,
                    points=points,
                    max_links=links(count),
                    is_brief=shown >= MAX_DETAILED,
                    findings=audited.get(result.key),
                )
                shown += 1
                views.append(view_attempt(result, place, result_letters([result])))
            yield _row(report, group, views)


def _place(split: str, report: Report) -> int:
    first = ("low", "medium", "high")
    known = (*first, *(name for name in report.membership.splits if name not in first))
    return known.index(split) if split in known else len(known)


def _row(report: Report, group: Sequence[Result], views: Sequence[AttemptView]) -> PageRow:
    first = group[0]
    competition = report.competitions.get(first.competition)
    scores = [r.grade.score for r in group if r.grade and r.grade.score is not None]
    places = [r.grade.percentile for r in group if r.grade and r.grade.percentile is not None]
    seconds = [r.agent_seconds for r in group if r.agent_seconds is not None]
    memory = [r.attempt.peak_memory for r in group if r.attempt.peak_memory is not None]
    issues = () if competition is None else competition.known_issues
    mean = _mean(scores)
    return PageRow(
        name=named(first, first.competition, several=len(report.blocks) > 1),
        title="" if competition is None else competition.title,
        url=competition.url if competition is not None and competition.source == "kaggle" else "",
        split=views[0].split,
        split_place=_place(views[0].split, report),
        category=views[0].category,
        issues=tuple((issue.label, issue.what) for issue in issues),
        leak=report.membership.leak(first.competition),
        spread=None if competition is None else _spread(report, group, views),
        attempts=tuple(views),
        medals=sum(bool(result.medal) for result in group),
        points=sum(int(result.medal) for result in group),
        score=mean,
        score_text="" if mean is None else show_score(round(mean, 5)),
        percentile=_mean(places),
        best=max(places, default=None),
        seconds=_mean(seconds),
        memory=max(memory, default=None),
        gpus=", ".join(dict.fromkeys(one_line(gpu) for r in group for gpu in r.attempt.gpus)),
        costs=costs_of(group),
    )


def _spread(report: Report, group: Sequence[Result], views: Sequence[AttemptView]) -> Spread | None:
    scored = [
        Scored(result.grade.score, result.medal, view.summary, view.anchor)
        for result, view in zip(group, views, strict=True)
        if result.grade is not None and result.grade.score is not None
    ]
    return draw_spread(report.competitions[group[0].competition].leaderboard, scored)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _rounded(seconds: float) -> float:
    """Return seconds as precisely as a table needs them."""
    return max(0.1, seconds if seconds < 60 else 60 * round(seconds / 60))
