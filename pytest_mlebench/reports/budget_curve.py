"""Rate against budget over several runs: what more time, CPUs, GPUs, dollars or seeds give."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pytest_mlebench._plain_text import one_line
from pytest_mlebench._units import parse_duration
from pytest_mlebench.budget import parse_budget
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.reports.attempts_curve import CurvePoint, attempts_texts, mean_point
from pytest_mlebench.reports.compare import (
    SIGNIFICANT,
    by_competition,
    permutation_test,
    show_p,
)
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.plots import Plot
from pytest_mlebench.reports.rates import MEASURES
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import Result
from pytest_mlebench.reports.summary import Line, cut, wrapped

UNITS = {
    "time-limit": "hours",
    "gpus": "GPUs",
    "cpus": "CPUs",
    "budget": "dollars",
    "seeds": "seeds",
}


@dataclass(frozen=True)
class Budgeted:
    """A run: its budget, and its rate on the competitions that all runs have."""

    name: str
    agent: str
    point: CurvePoint  # x is the budget
    groups: Mapping[str, Sequence[Result]]

    @property
    def results(self) -> list[Result]:
        """Return its results on the competitions that all runs have."""
        return [result for group in self.groups.values() for result in group]


@dataclass(frozen=True)
class PairTest:
    """Two runs, and how likely chance alone makes them differ so much."""

    first: str
    second: str
    change: float
    p: float
    corrected: float  # by Holm's method, for all pairs

    @property
    def is_significant(self) -> bool:
        """Tell whether the difference is more than chance, all pairs considered."""
        return self.corrected < SIGNIFICANT


@dataclass(frozen=True)
class BudgetCurve:
    """Several runs over one kind of budget."""

    by: str
    runs: tuple[Budgeted, ...]
    pairs: tuple[PairTest, ...]

    @property
    def plot(self) -> Plot:
        """Return a plot with a curve for each agent."""
        curves: dict[str, list[CurvePoint]] = {}
        for one in self.runs:
            curves.setdefault(one.agent, []).append(one.point)
        return Plot(f"by-{self.by}", f"Any medal by {self.by}", UNITS[self.by], curves)


def budget_curve(reports: Mapping[str, Report], by: str) -> BudgetCurve:
    """Return the rates of several runs, each of one agent, over their budgets."""
    for report in reports.values():
        report.require_one_agent("a comparison")
    found = {name: by_competition(report) for name, report in reports.items()}
    common = [i for i in next(iter(found.values())) if all(i in one for one in found.values())]
    if not common:
        raise ConfigError("the reports have no competition in common")
    medal = MEASURES["any_medal"]
    runs = []
    for name, report in reports.items():
        groups = {i: found[name][i] for i in common}
        rates = [100 * sum(map(medal, group)) / len(group) for group in groups.values()]
        agent = one_line(report.disclosure.agent or report.results[0].agent) or "any medal"
        point = mean_point(_budget(name, report, by), rates)
        runs.append(Budgeted(name, agent, point, groups))
    runs.sort(key=lambda run: run.point.x)
    return BudgetCurve(by, tuple(runs), tuple(_pairs(runs)))


def budget_lines(curve: BudgetCurve) -> list[Line]:
    """Return the curve for a terminal, at 80 columns."""
    unit = UNITS[curve.by]
    lines = [Line(f"{'run':<36}{unit:>10}{'any medal':>12}{'95 % interval':>18}", {"bold": True})]
    for run in curve.runs:
        point = run.point
        interval = f"{point.low:.2f}-{point.high:.2f}" if point.low < point.high else "-"
        lines.append(
            Line(f"{cut(run.name, 35):<36}{point.x:>10g}{point.value:>12.2f}{interval:>18}")
        )
    count = len(curve.runs[0].groups)
    lines += [
        Line(""),
        Line(f"rates in percent on the {count} competitions that all have"),
        Line("p: exact permutation test within competitions; Holm: corrected for all pairs"),
        Line(""),
        Line(f"{'pair':<46}{'change':>10}{'p':>10}{'Holm':>10}", {"bold": True}),
    ]
    for pair in curve.pairs:
        text = f"{cut(pair.first, 20)} -> {cut(pair.second, 20)}"
        mark = "  significant" if pair.is_significant else ""
        row = f"{text:<46}{pair.change:>+10.2f}{show_p(pair.p):>10}{show_p(pair.corrected):>10}"
        lines.append(Line(f"{row}{mark}".rstrip(), {"bold": pair.is_significant}))
    more = [
        Line(part)
        for run in curve.runs
        for text in attempts_texts(run.results)
        for part in wrapped(f"{run.name}: {text}")
    ]
    return [*lines, Line(""), *more] if more else lines


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number: Holm's step-down method."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    corrected, highest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = highest
    return corrected


def _pairs(runs: Sequence[Budgeted]) -> list[PairTest]:
    medal = MEASURES["any_medal"]
    pairs = list(itertools.combinations(runs, 2))
    tests = []
    for one, other in pairs:
        counts = [
            (
                sum(map(medal, one.groups[i])),
                len(one.groups[i]),
                sum(map(medal, other.groups[i])),
                len(other.groups[i]),
            )
            for i in one.groups
        ]
        tests.append(permutation_test(counts)[0])
    return [
        PairTest(one.name, other.name, other.point.value - one.point.value, p, corrected)
        for (one, other), p, corrected in zip(pairs, tests, holm(tests), strict=True)
    ]


def _budget(name: str, report: Report, by: str) -> float:
    """Return a run's budget; one that is not known, or not the same everywhere, is refused."""
    if by == "seeds":
        return float(len(report.seeds))
    reading = _READING[by]
    text = reading.text(report.disclosure)
    if text is None:
        raise ConfigError(f"{name}: its {by} is not known, compare it without --by={by}")
    try:
        value = reading.value(text)
    except (ConfigError, ValueError):
        value = None
    if value is None:
        raise ConfigError(f"{name}: its {by} is not one number, given: {text}")
    return value


@dataclass(frozen=True)
class _Reading:
    text: Callable[[Disclosure], str | None]
    value: Callable[[str], float | None]


_READING = {
    "time-limit": _Reading(
        lambda disclosure: disclosure.limits.get("time"),
        lambda text: parse_duration(text, "time") / 3600,
    ),
    "gpus": _Reading(lambda disclosure: disclosure.limits.get("gpus"), float),
    "cpus": _Reading(lambda disclosure: disclosure.limits.get("cpus"), float),
    "budget": _Reading(
        lambda disclosure: disclosure.budget, lambda text: parse_budget(text, "budget").usd
    ),
}
