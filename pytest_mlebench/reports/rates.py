"""Rates: mean and standard error over seeds, with a 95 % interval; every split's in one table."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pytest_mlebench.medals import Medal
from pytest_mlebench.registry import BENCHMARK
from pytest_mlebench.reports.costs import Costs, costs_of
from pytest_mlebench.reports.membership import ALL, DEMO, SELECTED, Membership
from pytest_mlebench.reports.results import Result

CONFIDENCE = 0.95

MEASURES: dict[str, Callable[[Result], bool]] = {
    "valid": lambda result: result.valid,
    "above_median": lambda result: result.above_median,
    "bronze": lambda result: result.medal is Medal.BRONZE,
    "silver": lambda result: result.medal is Medal.SILVER,
    "gold": lambda result: result.medal is Medal.GOLD,
    "any_medal": lambda result: result.medal > Medal.NONE,
}


@dataclass(frozen=True)
class Rate:
    """A rate in percent: one value per seed, their mean, its standard error, an interval."""

    mean: float
    sem: float | None  # None with one seed: there is nothing to estimate it from
    interval: tuple[float, float]
    method: Literal["t", "wilson"]  # over seeds, or over the competitions of the only seed
    values: tuple[float, ...]

    def text(self, *, ascii_only: bool = False) -> str:
        """Return ``62.12 ± 1.52``, or the mean alone where there is no standard error."""
        if self.sem is None:
            return f"{self.mean:.2f}"
        return f"{self.mean:.2f} {'+/-' if ascii_only else '±'} {self.sem:.2f}"

    def interval_text(self, *, ascii_only: bool = False) -> str:
        """Return ``55.60-68.64``, or a dash where all seeds agree and an interval has no width."""
        low, high = (f"{end:.2f}" for end in self.interval)
        if low == high:
            return "-" if ascii_only else "\u2013"
        return f"{low}-{high}"

    def to_dict(self) -> dict[str, Any]:
        """Return the rate in JSON types."""
        return {
            "mean": self.mean,
            "sem": self.sem,
            "interval": list(self.interval),
            "interval_method": self.method,
            "per_seed": list(self.values),
        }


@dataclass(frozen=True)
class SplitRates:
    """The rates of one agent on one split, and how much of it they rest on."""

    name: str
    competitions: int  # that were to run
    of: int  # that the split has
    seeds: tuple[int, ...]
    runs: int
    errors: int
    skipped: int
    missing: int
    rates: Mapping[str, Rate]
    leaky: int
    without_leaks: Rate | None  # the any-medal rate of the rest; None where nothing leaks
    costs: Costs
    agent: str = ""
    conditions: str = ""

    @property
    def not_run(self) -> int:
        """Return how many runs have no result of the agent's own."""
        return self.errors + self.skipped + self.missing

    @property
    def is_whole(self) -> bool:
        """Tell whether every competition of the split was to run."""
        return self.competitions == self.of

    def to_dict(self) -> dict[str, Any]:
        """Return the rates in JSON types."""
        rest = self.without_leaks
        return {
            "agent": self.agent,
            "conditions": self.conditions,
            "split": self.name,
            "competitions": self.competitions,
            "competitions_in_split": self.of,
            "seeds": list(self.seeds),
            "runs": self.runs,
            "errors": self.errors,
            "skipped": self.skipped,
            "missing": self.missing,
            **{name: rate.to_dict() for name, rate in self.rates.items()},
            "leaky_competitions": self.leaky,
            "any_medal_without_leaks": None if rest is None else rest.to_dict(),
            "costs": self.costs.to_dict(),
        }


def rate_over_seeds(hits: Sequence[Sequence[bool]]) -> Rate:
    """Return the rate of the hits of each seed; every seed has at least one run."""
    values = tuple(100 * sum(seed) / len(seed) for seed in hits)
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Rate(mean, None, wilson_interval(sum(hits[0]), len(hits[0])), "wilson", values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    sem = math.sqrt(variance / len(values))
    half_width = student_quantile(len(values) - 1) * sem if sem else 0.0
    interval = (max(0.0, mean - half_width), min(100.0, mean + half_width))
    return Rate(mean, sem, interval, "t", values)


def rate(results: Iterable[Result], hit: Callable[[Result], bool]) -> Rate:
    """Return how often *hit* is true, seed by seed; whatever did not run is no hit."""
    seeds: dict[int, list[bool]] = {}
    for result in results:
        seeds.setdefault(result.seed, []).append(hit(result))
    return rate_over_seeds([seeds[seed] for seed in sorted(seeds)])


def rates_of(name: str, results: Sequence[Result], of: int, leaky: frozenset[str]) -> SplitRates:
    """Return the rates of an agent's results under a split's name that has *of* competitions."""
    ids = {result.competition for result in results}
    statuses = Counter(result.status for result in results)
    tight = [result for result in results if result.competition not in leaky]
    medal = MEASURES["any_medal"]
    return SplitRates(
        name=name,
        competitions=len(ids),
        of=of,
        seeds=tuple(sorted({result.seed for result in results})),
        runs=len(results),
        errors=statuses["error"],
        skipped=statuses["skipped"],
        missing=statuses["missing"],
        rates={measure: rate(results, hit) for measure, hit in MEASURES.items()},
        leaky=len(ids & leaky),
        without_leaks=rate(tight, medal) if tight and len(tight) < len(results) else None,
        costs=costs_of(results),
        agent=results[0].agent,
        conditions=results[0].conditions,
    )


def rates_by_split(results: Sequence[Result], membership: Membership) -> tuple[SplitRates, ...]:
    """Return the rates of every split that is concerned, the benchmark's first.

    ``all`` appears only where it is whole; ``selected`` where no other row is the whole selection.
    """
    total = selection(results, membership)
    everything = {result.competition for result in total}
    rows, covered = [], False
    for name in _ordered(membership.splits):
        ids = set(membership.splits[name])
        inside = [result for result in results if result.competition in ids]
        if inside and (name != ALL or ids <= everything):
            rows.append(rates_of(name, inside, len(ids), membership.leaky))
            covered = covered or everything <= ids
    if total and not covered:
        rows.append(rates_of(SELECTED, total, len(everything), membership.leaky))
    return tuple(rows)


def selection(results: Sequence[Result], membership: Membership) -> list[Result]:
    """Return all results but those of the demonstrations, unless there is nothing else."""
    apart = set(membership.splits.get(DEMO, ()))
    return [result for result in results if result.competition not in apart] or list(results)


def wilson_interval(hits: int, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a proportion, in percent."""
    proportion, z = hits / trials, statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    centre = proportion + z * z / (2 * trials)
    variance = proportion * (1 - proportion) / trials + z * z / (4 * trials * trials)
    half_width = z * math.sqrt(variance)
    low, high = ((centre + side * half_width) / (1 + z * z / trials) for side in (-1, 1))
    return 100 * max(0.0, low), 100 * min(1.0, high)


def student_quantile(degrees_of_freedom: int) -> float:
    """Return the quantile of Student's t for a two-sided 95 % interval."""
    from scipy.special import stdtrit  # late on purpose: only for rates over several seeds

    return float(stdtrit(degrees_of_freedom, (1 + CONFIDENCE) / 2))


def _ordered(names: Iterable[str]) -> list[str]:
    first = (*BENCHMARK, ALL)
    return sorted(names, key=lambda name: first.index(name) if name in first else len(first))
