"""What the page shows, as data: the templates only lay it out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlebench._plain_text import one_line
from pytest_mlebench._units import show_duration, show_score, show_size, show_tokens
from pytest_mlebench.reports.attempt_facts import MEANINGS
from pytest_mlebench.reports.breakdown import count_failures, rates_by_category
from pytest_mlebench.reports.cost_text import HEAD as HEAD_OF_COSTS
from pytest_mlebench.reports.cost_text import cost_lines, cost_notes, cost_rows, shown_usd
from pytest_mlebench.reports.costs import Costs, costs_of
from pytest_mlebench.reports.page.attempt_view import (
    AttemptPlace,
    AttemptView,
    anchor_of,
    budget,
    view_attempt,
)
from pytest_mlebench.reports.page.spread import Scored, Spread, draw_spread
from pytest_mlebench.reports.plots import Plot
from pytest_mlebench.reports.rates import MEASURES, Rate, SplitRates
from pytest_mlebench.reports.results import Result, named
from pytest_mlebench.reports.summary import result_letters

if TYPE_CHECKING:
    from pytest_mlebench.reports.report import Report


@dataclass(frozen=True)
class Bar:
    """A rate that is drawn: mean and interval from 0 to 100."""

    name: str
    text: str
    interval: str  # "" where it has no width
    mean: float
    low: float
    high: float
    note: str


@dataclass(frozen=True)
class PageRow:
    """One competition with all its seeds."""

    name: str
    title: str
    url: str
    split: str
    category: str
    issues: tuple[tuple[str, str], ...]  # kind, what
    leaky: bool
    spread: Spread | None
    attempts: tuple[AttemptView, ...]
    medals: int
    points: int  # gold 3, silver 2, bronze 1
    score: float | None
    score_text: str
    percentile: float | None
    seconds: float | None
    memory: int | None
    gpus: str
    costs: Costs

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


@dataclass(frozen=True)
class PageView:
    """Everything on the page."""

    title: str
    agent: str
    facts: tuple[tuple[str, str], ...]
    standard: bool
    reasons: tuple[str, ...]  # why it is not
    guarantees: tuple[str, ...]
    statements: tuple[tuple[str, str], ...]  # the author's own words
    headlines: tuple[Bar, ...]
    rate_head: tuple[str, ...]
    rate_rows: tuple[tuple[str, ...], ...]
    categories: tuple[Bar, ...]
    complexities: tuple[Bar, ...]
    cost_lines: tuple[str, ...]
    cost_head: tuple[str, ...]
    cost_rows: tuple[tuple[str, ...], ...]
    cost_notes: tuple[str, ...]
    failures: tuple[tuple[str, int, str], ...]
    rows: tuple[PageRow, ...]
    seeds: tuple[int, ...]
    plots: tuple[Plot, ...]
    disclosure: tuple[str, ...]

    @property
    def has(self) -> dict[str, bool]:
        """Tell which columns have anything in them."""
        return {
            "time": any(row.seconds is not None for row in self.rows),
            "memory": any(row.memory is not None for row in self.rows),
            "gpus": any(row.gpus for row in self.rows),
            "costs": any(row.costs.has_figures for row in self.rows),
        }

    @property
    def splits(self) -> list[str]:
        """Return the splits that occur, in order."""
        return list(dict.fromkeys(row.split for row in self.rows))

    @property
    def category_names(self) -> list[str]:
        """Return the categories that occur."""
        return sorted({row.category for row in self.rows})

    @property
    def outcomes(self) -> list[str]:
        """Return the outcomes that occur."""
        return list(dict.fromkeys(one.outcome for row in self.rows for one in row.attempts))


def view_of(report: Report, folder: Path | None) -> PageView:
    """Return what the page shows of a report that is written into *folder*."""
    disclosure = report.disclosure
    agent = one_line(disclosure.agent or "")
    several = len(report.blocks) > 1
    head, *rates = _rates(report)
    conditions = report.comparability
    return PageView(
        title=f"MLE-bench report: {agent}" if agent else "MLE-bench report",
        agent=agent,
        facts=tuple(_facts(report)),
        standard=conditions.is_standard,
        reasons=tuple(map(one_line, conditions.reasons)),
        guarantees=tuple(map(one_line, conditions.guarantees)),
        statements=tuple((key, one_line(text)) for key, text in conditions.statements),
        headlines=tuple(_headlines(report)),
        rate_head=head,
        rate_rows=tuple(rates),
        categories=tuple(_bars(rates_by_category(report), several)),
        complexities=tuple(_bars(_by_complexity(report), several)),
        cost_lines=tuple(cost_lines(report.costs, disclosure.gpu_hour_usd)),
        cost_head=HEAD_OF_COSTS,
        cost_rows=tuple(map(tuple, cost_rows(report))),
        cost_notes=tuple(map(one_line, cost_notes(report.results))),
        failures=tuple(
            (kind, count, MEANINGS[kind]) for kind, count in count_failures(report.results).items()
        ),
        rows=tuple(_rows(report, folder)),
        seeds=report.seeds,
        plots=tuple(report.plots),
        disclosure=tuple(
            one_line(line)
            for line in (
                *disclosure.lines(),
                f"agent hours: {report.agent_hours:.2f}",
                f"format checks: {report.format_checks}",
                f"report made: {report.created}",
            )
        ),
    )


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    disclosure = report.disclosure
    shown = {
        "version": disclosure.agent_version,
        "made": report.created,
        "competitions": str(len({result.competition for result in report.results})),
        "seeds": str(len(report.seeds)),
        "agent hours": f"{report.agent_hours:.1f}" if report.agent_hours else None,
        "network": disclosure.network,
        "sandbox": disclosure.sandbox,
        "description": disclosure.description,
    }
    yield from ((name, one_line(value)) for name, value in shown.items() if value)


def _headlines(report: Report) -> Iterator[Bar]:
    several = len(report.blocks) > 1
    for row in report.rates:
        part = "" if row.is_whole else f"{row.competitions} of {row.of} competitions; "
        lost = f"; {row.not_run} missing, counted as no medal" if row.not_run else ""
        note = f"{part}{row.runs} attempts{lost}"
        yield _bar(named(row, row.name, several=several), row.rates["any_medal"], note)


def _bars(rows: Iterable[SplitRates], several: bool) -> Iterator[Bar]:
    for row in rows:
        count = f"{row.competitions} competition{'' if row.competitions == 1 else 's'}"
        yield _bar(named(row, row.name, several=several), row.rates["any_medal"], count)


def _bar(name: str, rate: Rate, note: str) -> Bar:
    low, high = rate.interval
    text = rate.interval_text()
    drawn = "" if len(text) == 1 else text  # a dash stands for no width
    return Bar(one_line(name), rate.text(), drawn, rate.mean, low, high, note)


def _by_complexity(report: Report) -> list[SplitRates]:
    wanted = ("low", "medium", "high")
    return [row for row in report.rates if row.name in wanted]


def _rates(report: Report) -> Iterator[tuple[str, ...]]:
    several = len(report.blocks) > 1
    measures = (name.replace("_", " ") for name in MEASURES)
    yield "split", "competitions", "seeds", *measures, "95 % interval", "no leaks", "missing"
    for row in report.rates:
        yield (
            one_line(named(row, row.name, several=several)),
            str(row.competitions) if row.is_whole else f"{row.competitions} of {row.of}",
            str(len(row.seeds)),
            *(rate.text() for rate in row.rates.values()),
            row.rates["any_medal"].interval_text(),
            "" if row.without_leaks is None else row.without_leaks.text(),
            f"{row.not_run} of {row.runs}",
        )


def _rows(report: Report, folder: Path | None) -> Iterator[PageRow]:
    order = [*report.membership.splits]
    taken: set[str] = set()
    max_bytes = budget(len(report.results))
    for number, block in enumerate(report.blocks):
        groups: dict[str, list[Result]] = {}
        for result in block:
            groups.setdefault(result.competition, []).append(result)
        splits = {name: report.membership.benchmark_split(name) for name in groups}
        for name in sorted(groups, key=lambda name: (_place(splits[name], order), name)):
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
                )
                views.append(view_attempt(result, place, result_letters([result])))
            yield _row(report, group, views)


def _place(split: str, order: Sequence[str]) -> int:
    first = ("low", "medium", "high")
    known = (*first, *(name for name in order if name not in first))
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
        category=views[0].category,
        issues=tuple((issue.label, issue.what) for issue in issues),
        leaky=first.competition in report.membership.leaky,
        spread=None if competition is None else _spread(report, group, views),
        attempts=tuple(views),
        medals=sum(bool(result.medal) for result in group),
        points=sum(int(result.medal) for result in group),
        score=mean,
        score_text="" if mean is None else show_score(round(mean, 5)),
        percentile=_mean(places),
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


def filters(view: PageView) -> Mapping[str, Sequence[str]]:
    """Return what the page can be filtered by: a name and its choices."""
    return {
        "split": view.splits,
        "category": view.category_names,
        "medal": ("gold", "silver", "bronze", "none"),
        "outcome": view.outcomes,
    }
