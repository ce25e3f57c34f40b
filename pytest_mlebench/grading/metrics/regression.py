"""Metrics of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_mlebench._units import show_score
from pytest_mlebench.errors import InvalidSubmission

Array = np.ndarray[Any, np.dtype[Any]]


def mae(truth: Array, prediction: Array, digits: int | None = None) -> float:
    """Return the mean absolute error, rounded to *digits* after the point, halves to even."""
    error = float(np.abs(truth - prediction).mean())
    return error if digits is None else round(error, digits)


def rmse(truth: Array, prediction: Array) -> float:
    """Return the root of the mean squared error; of several columns, the mean of the roots."""
    return float(np.sqrt(np.square(truth - prediction).mean(axis=0)).mean())


def rmsle(truth: Array, prediction: Array) -> float:
    """Return the root mean squared error of log(1 + x), averaged over columns."""
    if (prediction < 0).any():
        raise InvalidSubmission(f"a prediction is negative: {show_score(prediction.min())}")
    return rmse(np.log1p(truth), np.log1p(prediction))


def pearson(truth: Array, prediction: Array) -> float:
    """Return Pearson's correlation."""
    from scipy import stats

    if (prediction == prediction[0]).all():
        raise InvalidSubmission("all predictions are equal, their correlation is not defined")
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(prediction - prediction.mean()).all():
            largest = show_score(np.abs(prediction).max())
            raise InvalidSubmission(f"the predictions are too large for a mean, up to {largest}")
    return float(stats.pearsonr(truth, prediction)[0])


def spearman(truth: Array, prediction: Array) -> float:
    """Return Spearman's rank correlation, averaged over columns."""
    from scipy import stats

    if (prediction == prediction[0]).all(axis=0).any():  # infinite ones have no difference
        raise InvalidSubmission(
            "a column of predictions is constant, its correlation is not defined"
        )
    pairs = zip(np.atleast_2d(truth.T), np.atleast_2d(prediction.T), strict=True)
    return float(np.mean([stats.spearmanr(p, t)[0] for t, p in pairs]))


def angular_error(truth: Array, prediction: Array) -> float:
    """Return the mean angle between directions given as azimuth and zenith, all in radian.

    The angle is taken from the scalar product, which loses half of the digits of a small one.
    """
    (azimuth, zenith), (other_azimuth, other_zenith) = truth.T, prediction.T
    across = np.cos(azimuth) * np.cos(other_azimuth) + np.sin(azimuth) * np.sin(other_azimuth)
    along = np.cos(zenith) * np.cos(other_zenith)
    product = np.sin(zenith) * np.sin(other_zenith) * across + along
    return float(np.arccos(np.clip(product, -1, 1)).mean())
