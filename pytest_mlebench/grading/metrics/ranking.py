"""Metrics of ranked lists."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def map_at_k(truth: Array, prediction: Array, k: int) -> float:
    """Return the mean average precision of the first *k* blank-separated tokens of each row.

    A token counts once, at its first place; repeated and unknown tokens use up their places.
    """
    # a loop on purpose: sets of a few tokens are faster than one table of all of them
    pairs = zip(truth, prediction, strict=True)
    scores = [_precision(set(t.split(" ")), p.split(" ", k)[:k], k) for t, p in pairs]
    return float(np.mean(scores))


def _precision(relevant: set[str], ranked: list[str], k: int) -> float:
    """Return the average precision of one row."""
    places = sorted(map(ranked.index, relevant.intersection(ranked)))
    gained = sum(found / (place + 1) for found, place in enumerate(places, start=1))
    return gained / min(len(relevant), k)


def label_ranking_precision(truth: Array, prediction: Array) -> float:
    """Return the mean precision at the rank of each true label in its row, over all of them.

    Each column is a label. Labels of equal score all have the worst of their ranks.
    """
    true = truth > 0
    gained = 0.0
    for label in range(true.shape[1]):
        rows = true[:, label]
        scores = prediction[rows]
        above = scores >= scores[:, [label]]
        gained += float(((above & true[rows]).sum(axis=1) / above.sum(axis=1)).sum())
    return gained / int(true.sum())
