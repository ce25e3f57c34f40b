"""What more attempts give: pass@k and best-of-k for every k up to the number of seeds.

pass@k is the chance that at least one of k attempts at a competition earns a medal. Of n attempts
with c medals the unbiased estimate is 1 - C(n-c, k) / C(n, k): the proportion of all groups of k
attempts that have a medal among them. Best-of-k is the mean percentile of the best of k attempts,
estimated over all groups of k in the same way. Both are means over competitions; their intervals
are bootstraps over competitions, always with the same resamples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, takewhile
from typing import Any

from pytest_mlebench.medals import Medal
from pytest_mlebench.reports.results import Result

RESAMPLES = 2_000
EVERY_SIZE = 32  # of so many attempts each number has a point of its own
MIN_ATTEMPTS = 2  # of a competition, for a curve over attempts


@dataclass(frozen=True)
class CurvePoint:
    """A figure in percent with its interval."""

    x: float
    value: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """Return ``43.6 (32.9-54.2)``, with a dash for an interval without width."""
        low, high = f"{self.low:.1f}", f"{self.high:.1f}"
        return f"{self.value:.1f} ({'-' if low == high else f'{low}-{high}'})"

    def to_dict(self) -> dict[str, Any]:
        """Return the point in JSON types."""
        return {"value": self.value, "interval": [self.low, self.high]}


def pass_at_k(results: Iterable[Result]) -> list[CurvePoint]:
    """Return the chance of a medal with k attempts, for every k that all competitions have.

    Beyond ``EVERY_SIZE`` only every doubling, and the largest.
    """
    hits = (tuple(result.medal > Medal.NONE for result in group) for group in _groups(results))
    return list(_curve(tuple(hits), _medal_share))


def attempts_texts(results: Iterable[Result]) -> list[str]:
    """Return what k attempts give in sentences, with intervals; none of a single attempt."""
    results = tuple(results)
    if min(map(len, _groups(results)), default=0) < MIN_ATTEMPTS:
        return []
    return [
        f"a medal in one of k attempts: {points_text('pass', pass_at_k(results))}",
        f"mean percentile of the best of k: {points_text('best', best_of_k(results))}",
    ]


def points_text(name: str, points: Iterable[CurvePoint]) -> str:
    """Return ``pass@1 43.6 (32.9-54.2), pass@2 …``."""
    return ", ".join(f"{name}@{point.x:g} {point.text}" for point in points)


def best_of_k(results: Iterable[Result]) -> list[CurvePoint]:
    """Return the mean percentile of the best of k attempts; what has no place counts as zero."""
    percentiles = (tuple(map(_percentile, group)) for group in _groups(results))
    return list(_curve(tuple(percentiles), mean_of_best))


def proportion_with_hit(attempts: int, hits: int, k: int) -> float:
    """Return the proportion of all groups of *k* attempts that have a hit among them."""
    return 1 - math.comb(attempts - hits, k) / math.comb(attempts, k)


def mean_of_best(values: Sequence[float], k: int) -> float:
    """Return the mean over all groups of *k* values of the largest of the group."""
    ranked = sorted(values, reverse=True)
    # the proportion of groups of which a value is the largest: the others are among the rest of
    # them; one step after the other, as the numbers of groups are larger than any float
    weights, weight = [], k / len(ranked)
    for rest in range(len(ranked) - 1, k - 2, -1):
        weights.append(weight)
        weight *= (rest - k + 1) / max(1, rest)
    return math.fsum(weight * value for weight, value in zip(weights, ranked, strict=False))


def mean_point(x: float, values: Sequence[float]) -> CurvePoint:
    """Return the mean of a figure over competitions with its interval."""
    return CurvePoint(x, math.fsum(values) / len(values), *_interval(values))


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean over resampled competitions."""
    import numpy as np  # late on purpose: a report over time has hundreds of intervals

    means = np.sort(np.asarray(values, dtype=float)[_resamples(len(values))].mean(axis=1))
    return float(means[int(RESAMPLES * 0.025)]), float(means[int(RESAMPLES * 0.975)])


@lru_cache(maxsize=32)
def _resamples(size: int) -> Any:
    import numpy as np  # late on purpose, as above

    return np.random.default_rng(0).integers(0, size, (RESAMPLES, size))


@lru_cache(maxsize=32)  # the summary, the page and the other formats show the same
def _curve(
    groups: tuple[tuple[float, ...], ...], figure: Callable[[Sequence[float], int], float]
) -> tuple[CurvePoint, ...]:
    shortest = min(map(len, groups), default=0)
    return tuple(mean_point(k, [figure(group, k) for group in groups]) for k in _sizes(shortest))


def _sizes(most: int) -> list[int]:
    """Return for how many attempts there is a point: each number, of many every doubling."""
    doubled = takewhile(lambda size: size < most, (EVERY_SIZE << n for n in count(1)))
    return [*range(1, min(EVERY_SIZE, most) + 1), *doubled, *([most] if most > EVERY_SIZE else [])]


def _medal_share(hits: Sequence[float], k: int) -> float:
    return 100 * proportion_with_hit(len(hits), int(sum(hits)), k)


def _groups(results: Iterable[Result]) -> list[list[Result]]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.competition, []).append(result)
    return list(groups.values())


def _percentile(result: Result) -> float:
    return 0.0 if result.grade is None else result.grade.percentile or 0.0
