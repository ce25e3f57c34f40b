"""Where medals are won and attempts are lost: rates by category, failures by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pytest_mlebench.reports.attempt_facts import FAILURE_KINDS, FailureKind
from pytest_mlebench.reports.rates import SplitRates, rates_of, selection
from pytest_mlebench.reports.results import Result

if TYPE_CHECKING:
    from pytest_mlebench.reports.report import Report

UNKNOWN = "unknown"  # of a competition that is not installed


def rates_by_category(report: Report) -> list[SplitRates]:
    """Return the rates of each category of competitions, agent by agent, the largest first."""
    rows = []
    for block in report.blocks:
        groups: dict[str, list[Result]] = {}
        for result in selection(block, report.membership):
            category = report.membership.categories.get(result.competition, UNKNOWN)
            groups.setdefault(category, []).append(result)
        for name in sorted(groups, key=lambda name: (-len(groups[name]), name)):
            ids = {result.competition for result in groups[name]}
            rows.append(rates_of(name, groups[name], len(ids), report.membership.leaky))
    return rows


def count_failures(results: Iterable[Result]) -> dict[FailureKind, int]:
    """Return how many attempts have no score, by what kind of failure it is; only what occurs."""
    counts = Counter(result.failure for result in results)
    return {kind: counts[kind] for kind in FAILURE_KINDS if counts[kind]}


def failures_text(results: Iterable[Result]) -> str:
    """Return ``2 crash, 1 time``, or nothing where nothing failed."""
    return ", ".join(f"{count} {kind}" for kind, count in count_failures(results).items())
