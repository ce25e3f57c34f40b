"""What the page shows, as data: the templates only lay it out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlebench._plain_text import one_line
from pytest_mlebench.reports.attempt_facts import MEANINGS
from pytest_mlebench.reports.breakdown import count_failures, rates_by_category
from pytest_mlebench.reports.curves import TimeQuote, time_quotes
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.findings import AttemptFindings
from pytest_mlebench.reports.page.competition_rows import PageRow, page_rows
from pytest_mlebench.reports.page.cost_view import CostView, view_costs
from pytest_mlebench.reports.plots import Plot
from pytest_mlebench.reports.rates import MEASURES, Rate, SplitRates
from pytest_mlebench.reports.results import named

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
    costs: CostView
    failures: tuple[tuple[str, int, str], ...]
    rows: tuple[PageRow, ...]
    audit: tuple[tuple[AttemptFindings, str], ...]  # what was found, and where its attempt is
    quotes: tuple[TimeQuote, ...]
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
    def marks(self) -> set[str]:
        """Return the marks of leaks and findings that occur, for the legend."""
        return {row.leak for row in self.rows} | {
            one.flag for row in self.rows for one in row.attempts
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
    rows = tuple(page_rows(report, folder))
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
        costs=view_costs(report),
        failures=tuple(
            (kind, count, MEANINGS[kind]) for kind, count in count_failures(report.results).items()
        ),
        rows=rows,
        audit=tuple(_audited(report, rows)),
        quotes=tuple(time_quotes(report)),
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
        "ran": _ran(disclosure),
        "report made": report.created,
        "competitions": str(len({result.competition for result in report.results})),
        "seeds": str(len(report.seeds)),
        "agent hours": f"{report.agent_hours:.1f}" if report.agent_hours else None,
        "network": disclosure.network,
        "sandbox": disclosure.sandbox,
        "description": disclosure.description,
    }
    yield from ((name, one_line(value)) for name, value in shown.items() if value)


def _ran(disclosure: Disclosure) -> str | None:
    """Return when the attempts ran, as far as that is known."""
    first, last = disclosure.started, disclosure.finished
    if first is None or last is None:
        return first if last is None else f"until {last}"
    return first if first == last else f"{first} to {last}"


def _audited(report: Report, rows: Iterable[PageRow]) -> Iterator[tuple[AttemptFindings, str]]:
    """Yield the attempts with findings, each with the anchor of its detail."""
    anchors = {one.key: one.anchor for row in rows for one in row.attempts}
    for each in () if report.audit is None else report.audit.attempts:
        if each.findings:
            yield each, anchors.get(each.key, "")


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


def filters(view: PageView) -> Mapping[str, Sequence[str]]:
    """Return what the page can be filtered by: a name and its choices."""
    return {
        "split": view.splits,
        "category": view.category_names,
        "medal": ("gold", "silver", "bronze", "none"),
        "outcome": view.outcomes,
    }
