"""Rates: mean and standard error over seeds, with a 95 % interval; every split's in one table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pytest_mlebench.medals import Medal
from pytest_mlebench.registry import BENCHMARK
from pytest_mlebench.reports.membership import ALL, APART, SELECTED, Membership
from pytest_mlebench.reports.results import Result

CONFIDENCE = 0.95
Z = 1.959963984540054  # the normal quantile of the 95 % interval

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

    def interval_text(self) -> str:
        """Return ``55.60-68.64``."""
        return f"{self.interval[0]:.2f}-{self.interval[1]:.2f}"

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
    """The rates of one split, and how much of it they rest on."""

    name: str
    competitions: int  # that were to run
    of: int  # that the split has
    seeds: tuple[int, ...]
    runs: int
    errors: int
    missing: int
    rates: Mapping[str, Rate]
    leaky: int
    without_leaks: Rate | None  # the any-medal rate of the rest; None where nothing leaks

    @property
    def is_whole(self) -> bool:
        """Tell whether every competition of the split was to run."""
        return self.competitions == self.of

    def to_dict(self) -> dict[str, Any]:
        """Return the rates in JSON types."""
        rest = self.without_leaks
        return {
            "split": self.name,
            "competitions": self.competitions,
            "competitions_in_split": self.of,
            "seeds": list(self.seeds),
            "runs": self.runs,
            "errors": self.errors,
            "missing": self.missing,
            **{name: rate.to_dict() for name, rate in self.rates.items()},
            "leaky_competitions": self.leaky,
            "any_medal_without_leaks": None if rest is None else rest.to_dict(),
        }


def rate_over_seeds(hits: Sequence[Sequence[bool]]) -> Rate:
    """Return the rate of the hits of each seed; every seed has at least one run."""
    values = tuple(100 * sum(seed) / len(seed) for seed in hits)
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Rate(mean, None, wilson_interval(sum(hits[0]), len(hits[0])), "wilson", values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    sem = math.sqrt(variance / len(values))
    reach = student_quantile(len(values) - 1) * sem
    return Rate(mean, sem, (max(0.0, mean - reach), min(100.0, mean + reach)), "t", values)


def rate(results: Iterable[Result], hit: Callable[[Result], bool]) -> Rate:
    """Return how often *hit* is true, seed by seed; whatever did not run is no hit."""
    seeds: dict[int, list[bool]] = {}
    for result in results:
        seeds.setdefault(result.seed, []).append(hit(result))
    return rate_over_seeds([seeds[seed] for seed in sorted(seeds)])


def rates_of(name: str, results: Sequence[Result], of: int, leaky: frozenset[str]) -> SplitRates:
    """Return the rates of some results under the name of a split that has *of* competitions."""
    ids = {result.competition for result in results}
    tight = [result for result in results if result.competition not in leaky]
    medal = MEASURES["any_medal"]
    return SplitRates(
        name=name,
        competitions=len(ids),
        of=of,
        seeds=tuple(sorted({result.seed for result in results})),
        runs=len(results),
        errors=sum(result.outcome == "error" for result in results),
        missing=sum(result.outcome == "missing" for result in results),
        rates={measure: rate(results, hit) for measure, hit in MEASURES.items()},
        leaky=len(ids & leaky),
        without_leaks=rate(tight, medal) if tight and len(tight) < len(results) else None,
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
    apart = set(membership.splits.get(APART, ()))
    return [result for result in results if result.competition not in apart] or list(results)


def wilson_interval(hits: int, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a proportion, in percent."""
    share, z2 = hits / trials, Z * Z
    centre = share + z2 / (2 * trials)
    reach = Z * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials))
    low, high = ((centre + side * reach) / (1 + z2 / trials) for side in (-1, 1))
    return 100 * max(0.0, low), 100 * min(1.0, high)


def student_quantile(freedom: int) -> float:
    """Return the quantile of Student's t for a two-sided 95 % interval."""
    low, high = 0.0, 64.0  # one degree of freedom, the widest, needs 12.7
    while high - low > 1e-12:
        middle = (low + high) / 2
        if _central_probability(middle, freedom) < CONFIDENCE:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _central_probability(t: float, freedom: int) -> float:
    """Return P(-t < T < t) by the finite series that whole degrees of freedom allow."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine2 = math.cos(angle) ** 2
    odd = freedom % 2
    term, total = 1.0, 0.0
    for k in range(freedom // 2):
        total += term
        term *= cosine2 * (2 * k + 1 + odd) / (2 * k + 2 + odd)
    if odd:
        return 2 / math.pi * (angle + math.sin(angle) * math.cos(angle) * total)
    return math.sin(angle) * total


def _ordered(names: Iterable[str]) -> list[str]:
    first = (*BENCHMARK, ALL)
    return sorted(names, key=lambda name: first.index(name) if name in first else len(first))
