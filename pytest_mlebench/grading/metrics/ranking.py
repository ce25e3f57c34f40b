"""Metrics of ranked lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_mlebench.grading.tokens import first, hashes, is_in, is_repeated

LONG_CHARS = 10_000

Array = np.ndarray[Any, np.dtype[Any]]


def map_at_k(truth: Array, prediction: Array, k: int) -> float:
    """Return the mean average precision of the first *k* blank-separated tokens of each row.

    A token counts once, at its first place; repeated and unknown tokens use up their places.
    """
    true, given = hashes(truth, " "), first(hashes(_cut(prediction, k), " "), k)
    true_keys, keys, rows = true.keys, given.keys, given.rows
    relevant = np.bincount(true.rows[~is_repeated(true_keys)], minlength=len(truth))
    hits = is_in(keys, true_keys) & ~is_repeated(keys)
    found = np.cumsum(hits)
    before = np.append(0, found)[np.cumsum(given.counts) - given.counts]  # in earlier rows
    gained = (found - before[rows])[hits] / (given.places[hits] + 1)
    sums = np.bincount(rows[hits], gained, minlength=len(truth))
    return float((sums / np.minimum(relevant, k)).mean())


def _cut(texts: Array, k: int) -> list[str]:
    """Return texts without what follows their first *k* tokens, where that is much."""
    return [
        text if len(text) < LONG_CHARS else " ".join(text.split(" ", k)[:k])
        for text in texts.tolist()
    ]


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
