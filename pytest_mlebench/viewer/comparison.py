"""Comparisons of runs as tables, for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_mlebench._units import show_usd
from pytest_mlebench.reports.attempts_curve import MIN_ATTEMPTS, CurvePoint, best_of_k, pass_at_k
from pytest_mlebench.reports.budget_curve import UNITS, BudgetCurve
from pytest_mlebench.reports.compare import Comparison, show_p
from pytest_mlebench.reports.cost_comparison import show_change
from pytest_mlebench.reports.results import Result
from pytest_mlebench.reports.summary import LEGEND, mean_percentile, result_letters

TEST = "p: exact permutation test within competitions, two-sided"


@dataclass(frozen=True)
class ComparisonTable:
    """A table of a comparison: texts only."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def two_runs(comparison: Comparison) -> list[ComparisonTable]:
    """Return two runs side by side: rates, what more attempts give, every competition."""
    pairs = comparison.pairs
    sides = {
        name: [result for pair in pairs.values() for result in pair[side]]
        for side, name in enumerate(("A", "B"))
    }
    competitions = tuple(
        (
            name,
            result_letters(old),
            result_letters(new),
            mean_percentile(old),
            mean_percentile(new),
        )
        for name, (old, new) in pairs.items()
    )
    head = ("competition", "A", "B", "percentile A", "percentile B")
    return [
        ComparisonTable(
            f"Rates in percent on the {len(pairs)} competitions that both have; {TEST}",
            ("measure", "A", "B", "B - A", "p"),
            tuple(_rates(comparison)),
        ),
        *_attempts(sides),
        ComparisonTable(f"Every competition: {LEGEND}", head, competitions),
    ]


def notes(comparison: Comparison) -> list[str]:
    """Return what has to be known of a comparison, in sentences."""
    low, high = comparison.differences["any_medal"].interval
    found = [f"95 % interval of the change in any medal: {low:+.2f} to {high:+.2f}"]
    found += [f"warning: {comparison.warning}"] if comparison.warning else []
    found += [] if comparison.cost is None else comparison.cost.notes
    found += [f"not alike: {text}" for text in comparison.conditions]
    for side, names in (("A", comparison.only_before), ("B", comparison.only_after)):
        found += [f"only in {side} ({len(names)}): {', '.join(names)}"] if names else []
    found += [text for text in (comparison.names, comparison.regression()) if text]
    return found


def over_budget(curve: BudgetCurve) -> list[ComparisonTable]:
    """Return runs over one of their budgets: rates, pairs, what more attempts give."""
    count = len(curve.runs[0].groups)
    runs = tuple(
        (run.name, run.agent, f"{run.point.x:g}", f"{run.point.value:.2f}", _interval(run.point))
        for run in curve.runs
    )
    pairs = tuple(
        (
            f"{pair.first} → {pair.second}",
            f"{pair.change:+.2f}",
            show_p(pair.p),
            show_p(pair.corrected),
            "significant" if pair.is_significant else "",
        )
        for pair in curve.pairs
    )
    return [
        ComparisonTable(
            f"Any medal in percent on the {count} competitions that all have",
            ("run", "agent", UNITS[curve.by], "any medal", "95 % interval"),
            runs,
        ),
        ComparisonTable(
            f"{TEST}; Holm: corrected for all pairs", ("pair", "change", "p", "Holm", ""), pairs
        ),
        *_attempts({run.name: run.results for run in curve.runs}),
    ]


def _rates(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    for name, one in comparison.differences.items():
        cells = (f"{one.before:.2f}", f"{one.after:.2f}", f"{one.change:+.2f}")
        yield name.replace("_", " "), *cells, show_p(one.p_two_sided)
    if comparison.only_before or comparison.only_after:
        before, after = comparison.everything["any_medal"]
        what = "any medal on all, what one side lacks counted as none"
        yield what, f"{before:.2f}", f"{after:.2f}", f"{after - before:+.2f}", ""
    if (cost := comparison.cost) is not None:
        dollars = (show_usd(cost.before), show_usd(cost.after), show_change(cost.change))
        yield "$ per attempt", *dollars, show_p(cost.p_two_sided)


def _attempts(sides: dict[str, list[Result]]) -> Iterator[ComparisonTable]:
    """Yield pass@k and best-of-k of every run that has several attempts."""
    for title, curve in (
        ("A medal in one of k attempts, in percent", pass_at_k),
        ("Mean percentile of the best of k attempts", best_of_k),
    ):
        found = {name: curve(results) for name, results in sides.items()}
        found = {name: points for name, points in found.items() if len(points) >= MIN_ATTEMPTS}
        if found:
            yield ComparisonTable(f"{title}, with 95 % intervals", *_by_k(found))


def _by_k(
    curves: dict[str, Sequence[CurvePoint]] | dict[str, list[CurvePoint]],
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    most = max(map(len, curves.values()))
    head = ("run", *(f"k = {k}" for k in range(1, most + 1)))
    rows = (
        (name, *(point.text for point in points), *[""] * (most - len(points)))
        for name, points in curves.items()
    )
    return head, tuple(rows)


def _interval(point: CurvePoint) -> str:
    return f"{point.low:.2f}-{point.high:.2f}" if point.low < point.high else "\u2013"
