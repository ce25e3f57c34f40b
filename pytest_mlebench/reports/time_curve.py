"""What less time would have given, by the submissions that were kept while agents ran.

At a moment an attempt has what its latest snapshot by then would have earned; once it has ended,
what it did earn. Attempts without snapshots count from their end on. What a curve says of a shorter
limit is an upper bound for agents that know their limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pytest_mlebench.medals import Medal
from pytest_mlebench.reports.attempts_curve import CurvePoint, mean_point
from pytest_mlebench.reports.results import Result

HOUR = 3600.0
MAX_HOURS = 24 * 7  # of a curve; a longer run is drawn to here
QUOTED_HOURS = (2, 8, 24)
UPPER_BOUND = "an upper bound for agents that know their limit"
MEASURES = ("any medal", "above median", "mean percentile")


@dataclass(frozen=True)
class Earned:
    """What an attempt has at a moment."""

    medal: bool = False
    above_median: bool = False
    percentile: float = 0.0


def time_curves(results: Sequence[Result]) -> dict[str, list[CurvePoint]]:
    """Return the rates after every hour; none where no snapshots were kept."""
    if not any(result.snapshots for result in results):
        return {}
    longest = max((result.agent_seconds or 0.0 for result in results), default=0.0)
    step = HOUR if longest > HOUR else max(longest / 10, 1.0)
    steps = min(MAX_HOURS, int(-(-longest // step)))
    figures: dict[str, Callable[[Earned], float]] = {
        "any medal": lambda one: 100.0 * one.medal,
        "above median": lambda one: 100.0 * one.above_median,
        "mean percentile": lambda one: one.percentile,
    }
    curves: dict[str, list[CurvePoint]] = {name: [] for name in figures}
    for number in range(1, steps + 1):
        groups = _by_competition(results, number * step)
        for name, figure in figures.items():
            means = [sum(map(figure, group)) / len(group) for group in groups]
            curves[name].append(mean_point(number * step / HOUR, means))
    return curves


def earned_by(result: Result, seconds: float) -> Earned:
    """Return what an attempt has after so many seconds."""
    if result.agent_seconds is not None and seconds >= result.agent_seconds:
        grade = result.grade
        if grade is None:
            return Earned()
        return Earned(grade.medal > Medal.NONE, grade.above_median, grade.percentile or 0.0)
    latest = [one for one in result.snapshots if one.seconds <= seconds]
    if not latest:
        return Earned()
    one = latest[-1]
    return Earned(one.medal > Medal.NONE, one.above_median, one.percentile or 0.0)


def quoted(curve: Iterable[CurvePoint]) -> list[CurvePoint]:
    """Return what 2, 8 and 24 hours would have given, as far as the curve goes."""
    return [point for point in curve if point.x in QUOTED_HOURS]


def time_text(results: Sequence[Result]) -> str:
    """Return ``2 h 31.2 (20.1-43.0), 8 h …``; nothing where no snapshots were kept that long."""
    points = quoted(time_curves(results).get("any medal", ()))
    return ", ".join(f"{point.x:g} h {point.text}" for point in points)


def _by_competition(results: Iterable[Result], seconds: float) -> list[list[Earned]]:
    groups: dict[str, list[Earned]] = {}
    for result in results:
        groups.setdefault(result.competition, []).append(earned_by(result, seconds))
    return list(groups.values())
