"""Metrics of texts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pytest_mlebench.errors import InvalidSubmission

Array = np.ndarray[Any, np.dtype[Any]]


def exact_match(truth: Array, prediction: Array) -> float:
    """Return the share of rows whose texts are the same to the letter."""
    return float(np.mean(truth == prediction))


def levenshtein(truth: Array, prediction: Array) -> float:
    """Return the mean edit distance over code points, by a compiled library."""
    from rapidfuzz import process
    from rapidfuzz.distance import Levenshtein

    distances = process.cpdist(truth, prediction, scorer=Levenshtein.distance, workers=-1)
    return float(np.mean(distances))


def word_jaccard(truth: Array, prediction: Array, both_empty: float = math.nan) -> float:
    """Return the mean overlap of the sets of lower-case words.

    *both_empty* is the overlap of two texts without words; without it there is none.
    """
    pairs = (
        (set(t.lower().split()), set(p.lower().split()))
        for t, p in zip(truth, prediction, strict=True)
    )
    scores = [len(t & p) / len(t | p) if t or p else both_empty for t, p in pairs]
    mean = float(np.mean(scores))
    if math.isnan(mean):
        raise InvalidSubmission(
            "a text has no words where the true one has none either, their overlap is not defined"
        )
    return mean
