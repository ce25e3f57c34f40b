"""Resampling: the bootstrap of a mean over competitions."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

RESAMPLES = 10_000


def bootstrap_interval(changes: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean over resampled competitions."""
    sample = random.Random(0)  # the same reports always give the same interval
    size = len(changes)
    means = sorted(math.fsum(sample.choices(changes, k=size)) / size for _ in range(RESAMPLES))
    return means[int(RESAMPLES * 0.025)], means[int(RESAMPLES * 0.975)]
