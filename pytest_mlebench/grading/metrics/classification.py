"""Metrics of class labels and class probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from pytest_mlebench.grading.tokens import is_in, is_repeated, sets

Array = np.ndarray[Any, np.dtype[Any]]

EPSILON = float(np.finfo(np.float64).eps)


def accuracy(truth: Array, prediction: Array) -> float:
    """Return the share of equal labels."""
    return float(np.mean(truth == prediction))


def error_rate(truth: Array, prediction: Array) -> float:
    """Return the share of unequal labels."""
    return 1 - accuracy(truth, prediction)


def log_loss(truth: Array, prediction: Array, epsilon: float = EPSILON) -> float:
    """Return the mean negative log-likelihood of one-hot truths; rows are not rescaled."""
    losses = np.clip(prediction, epsilon, 1 - epsilon)
    np.log(losses, out=losses)
    losses *= truth  # in place: there may be hundreds of classes
    return float(-losses.sum(axis=1).mean())


def binary_log_loss(truth: Array, prediction: Array, epsilon: float = EPSILON) -> float:
    """Return the mean negative log-likelihood of 0/1 truths."""
    clipped = np.clip(prediction, epsilon, 1 - epsilon)
    return float(-np.where(truth == 1, np.log(clipped), np.log1p(-clipped)).mean())


def roc_auc(truth: Array, prediction: Array) -> float:
    """Return the area under the ROC curve; of several columns, the plain mean."""
    if truth.ndim == 1:
        return _area(truth, prediction)
    return float(np.mean([_area(*pair) for pair in zip(truth.T, prediction.T, strict=True)]))


def weighted_roc_auc(
    truth: Array, prediction: Array, bounds: Sequence[float], weights: Sequence[float]
) -> float:
    """Return the area under the ROC curve, weighted by bands of the true positive rate.

    *bounds* are the rates between which a weight applies, from 0 to 1.
    """
    from sklearn import metrics as sk  # late on purpose: not every metric needs it

    false, true, _ = sk.roc_curve(truth, prediction)
    for bound in bounds[1:-1]:
        false, true = _with_point(false, true, bound)
    total, norm = 0.0, 0.0
    for low, high, weight in zip(bounds[:-1], bounds[1:], weights, strict=True):
        band = (low <= true) & (true <= high)
        area = sk.auc(np.append(false[band], 1.0), np.append(true[band], high) - low)
        total, norm = total + weight * area, norm + weight * (high - low)
    return total / norm


def _area(truth: Array, prediction: Array) -> float:
    """Return the share of pairs of a hit and a miss that are in order, ties counting one half.

    Two sorts and two searches take a third of the time that scikit-learn's curve takes.
    """
    hits, misses = np.sort(prediction[truth == 1]), np.sort(prediction[truth == 0])
    if not len(hits) or not len(misses) or len(hits) + len(misses) < len(truth):
        raise ValueError("the truth must hold both 0 and 1, and nothing else")
    below = np.searchsorted(misses, hits, side="left").sum()
    not_above = np.searchsorted(misses, hits, side="right").sum()
    return float((below + not_above) / (2 * len(hits) * len(misses)))


def _with_point(false: Array, true: Array, rate: float) -> tuple[Array, Array]:
    """Return a curve that has a point at a true positive rate, interpolated if need be."""
    if (true == rate).any():
        return false, true
    at = int(np.argmax(true > rate))
    share = (rate - true[at - 1]) / (true[at] - true[at - 1])
    between = false[at - 1] + share * (false[at] - false[at - 1])
    return np.insert(false, at, between), np.insert(true, at, rate)


def f1(truth: Array, prediction: Array, average: Literal["macro", "micro"] = "macro") -> float:
    """Return the F1 score over the union of true and predicted labels."""
    codes, labels = pd.factorize(np.concatenate([truth, prediction]))
    true, predicted = codes[: len(truth)], codes[len(truth) :]
    hits = np.bincount(true[true == predicted], minlength=len(labels))
    named = np.bincount(codes, minlength=len(labels))  # by either side, so never 0
    if average == "micro":
        return float(2 * hits.sum() / named.sum())
    return float((2 * hits / named).mean())


def multilabel_f1(truth: Array, prediction: Array) -> float:
    """Return the F1 score over all pairs of a row and a blank-separated label, each counted once.

    Labels that occur nowhere in the truth count for nothing.
    """
    true, given = sets(truth), sets(prediction)
    given = given.where(is_in(given.values, true.values))
    true_keys, keys = true.keys, given.keys
    once = ~is_repeated(keys)
    pairs = np.count_nonzero(~is_repeated(true_keys)) + np.count_nonzero(once)
    hits = np.count_nonzero(is_in(keys[once], true_keys))
    return 2 * hits / pairs if pairs else 0.0


def matthews(truth: Array, prediction: Array) -> float:
    """Return Matthews' correlation coefficient, 0 where one side has a single label.

    It is taken from counts: a table of all pairs of labels would be as large as a file of many
    different ones makes it.
    """
    codes, labels = pd.factorize(np.concatenate([truth, prediction]))
    rows = float(len(truth))
    true, named = (
        np.bincount(side, minlength=len(labels)).astype(np.float64)
        for side in (codes[: len(truth)], codes[len(truth) :])
    )
    hits = np.count_nonzero(codes[: len(truth)] == codes[len(truth) :])
    spread = (rows**2 - true @ true) * (rows**2 - named @ named)
    return float((hits * rows - true @ named) / np.sqrt(spread)) if spread else 0.0


def quadratic_kappa(truth: Array, prediction: Array) -> float:
    """Return Cohen's kappa with quadratic weights over the positions of the labels seen."""
    from sklearn import metrics as sk  # late on purpose: not every metric needs it

    return float(sk.cohen_kappa_score(prediction, truth, weights="quadratic"))
