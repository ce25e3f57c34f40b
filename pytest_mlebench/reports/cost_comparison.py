"""A change of cost between two reports: whether it is chance, and how large it may be elsewhere.

The attempts are paired by competition, as medals are. If two agents spend alike on a competition,
its attempts could have come from either; so the test permutes the dollars of each competition
between the two sides and asks how often the mean cost changes as much as it did. Permutations are
drawn at random, always the same ones: of dollars, unlike medals, there are too many to count.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_mlebench._units import show_usd
from pytest_mlebench.reports.resampling import RESAMPLES, bootstrap_interval
from pytest_mlebench.reports.results import Result

MAX_ARRANGEMENTS = 1_000  # of one competition's attempts; of more, so many at random

Dollars = tuple[float, ...]


@dataclass(frozen=True)
class CostDifference:
    """The mean cost of an attempt before and after, in dollars."""

    before: float
    after: float
    interval: tuple[float, float]  # 95 %, by bootstrap over competitions
    p_two_sided: float
    competitions: int  # whose cost is known on both sides
    left_out: int  # whose cost is not

    @property
    def change(self) -> float:
        """Return by how many dollars an attempt became more expensive."""
        return self.after - self.before

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the figures rest on, a line each."""
        low, high = (show_change(end) for end in self.interval)
        known = f"dollars: on the {self.competitions} competitions whose cost is known in both"
        return (
            f"95 % interval of the change in dollars per attempt: {low} to {high}",
            f"{known}; {self.left_out} left out" if self.left_out else known,
        )


def compare_costs(
    pairs: Mapping[str, tuple[Sequence[Result], Sequence[Result]]],
) -> CostDifference | None:
    """Return how the cost of an attempt changed; None where no competition's cost is known."""
    sides = [(_dollars(old), _dollars(new)) for old, new in pairs.values()]
    known = [(old, new) for old, new in sides if old is not None and new is not None]
    if not known:
        return None
    changes = [_mean(new) - _mean(old) for old, new in known]
    return CostDifference(
        before=_mean([_mean(old) for old, _ in known]),
        after=_mean([_mean(new) for _, new in known]),
        interval=bootstrap_interval(changes),
        p_two_sided=_permutation_test(known, changes),
        competitions=len(known),
        left_out=len(sides) - len(known),
    )


def show_change(usd: float) -> str:
    """Return ``+$1.20`` or ``-$0.30``."""
    return f"{'-' if usd < 0 else '+'}{show_usd(abs(usd))}"


def _permutation_test(pairs: Iterable[tuple[Dollars, Dollars]], changes: Sequence[float]) -> float:
    """Return how often permuted attempts change the mean cost at least as much, two-sided."""
    sample = random.Random(0)  # the same reports always give the same p
    totals = [0.0] * RESAMPLES
    for old, new in pairs:
        possible = _arrangements(old, new, sample)
        drawn = sample.choices(possible, k=RESAMPLES)
        totals = [total + change for total, change in zip(totals, drawn, strict=True)]
    least = abs(math.fsum(changes)) * (1 - 1e-9)  # as much, whatever the floats say
    hits = sum(abs(total) >= least for total in totals)
    # the observed arrangement is one of them: p is never zero
    return (hits + 1) / (RESAMPLES + 1)


def _arrangements(old: Dollars, new: Dollars, sample: random.Random) -> list[float]:
    """Return the changes of the mean that come of dealing all attempts to the two sides anew."""
    pool = (*old, *new)
    places = range(len(pool))
    if math.comb(len(pool), len(new)) <= MAX_ARRANGEMENTS:
        chosen: Iterable[Sequence[int]] = itertools.combinations(places, len(new))
    else:
        chosen = (sample.sample(places, len(new)) for _ in range(MAX_ARRANGEMENTS))
    total = math.fsum(pool)
    changes = []
    for side in chosen:
        ours = math.fsum(pool[place] for place in side)
        changes.append(ours / len(new) - (total - ours) / len(old))
    return changes


def _dollars(results: Sequence[Result]) -> Dollars | None:
    """Return what each attempt cost; None if that is not known of every one."""
    uses = [result.model_use for result in results if result.ran]
    costs = [None if use is None else use.usd for use in uses]
    known = tuple(usd for usd in costs if usd is not None)
    return known if known and len(known) == len(costs) else None


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
