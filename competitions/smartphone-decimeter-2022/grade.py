"""The 50th and 95th percentile of the distance error of each phone, averaged."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

EARTH_RADIUS = 6_371_000  # metres
PERCENTILES = [0.50, 0.95]
ANGLES = ["LatitudeDegrees", "LongitudeDegrees"]


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean over phones, which all weigh the same."""
    errors = _distances(answers, submission)
    if errors.isna().any():  # rounding can lead out of the domain of the arcsine; not to be skipped
        return math.nan
    return float(errors.groupby(answers["tripId"]).quantile(PERCENTILES).mean())


def _distances(here: pd.DataFrame, there: pd.DataFrame) -> pd.Series:
    """Return great-circle distances in metres by the haversine formula."""
    latitude, longitude = (np.radians(here[angle]) for angle in ANGLES)
    other_latitude, other_longitude = (np.radians(there[angle]) for angle in ANGLES)
    haversine = (
        np.sin((other_latitude - latitude) / 2) ** 2
        + np.cos(latitude) * np.cos(other_latitude) * np.sin((other_longitude - longitude) / 2) ** 2
    )
    with np.errstate(invalid="ignore"):
        return 2 * EARTH_RADIUS * np.arcsin(np.sqrt(haversine))
