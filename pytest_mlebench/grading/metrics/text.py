"""Metrics of texts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pytest_mlebench.errors import InvalidSubmission
from pytest_mlebench.grading.tokens import is_in, is_repeated, sets

Array = np.ndarray[Any, np.dtype[Any]]


def exact_match(truth: Array, prediction: Array) -> float:
    """Return the share of rows whose texts are the same to the letter."""
    return float(np.mean(truth == prediction))


def levenshtein(truth: Array, prediction: Array) -> float:
    """Return the mean edit distance over code points."""
    return float(np.mean(edit_distances(truth, prediction)))


def edit_distances(truth: Array, prediction: Array) -> Array:
    """Return the edit distance of each pair over code points, by a compiled library."""
    from rapidfuzz import process  # late on purpose: not every metric needs it
    from rapidfuzz.distance import Levenshtein

    return np.asarray(process.cpdist(truth, prediction, scorer=Levenshtein.distance, workers=-1))


def word_jaccard(truth: Array, prediction: Array, both_empty: float = math.nan) -> float:
    """Return the mean overlap of the sets of lower-case words.

    *both_empty* is the overlap of two texts without words; without it there is none.
    """
    true, given = (sets([text.lower() for text in side]) for side in (truth, prediction))
    keys = [side.keys for side in (true, given)]
    words = [~is_repeated(each) for each in keys]
    sizes = [
        np.bincount(side.rows[once], minlength=len(truth))
        for side, once in zip((true, given), words, strict=True)
    ]
    hits = words[1] & is_in(keys[1], keys[0])
    common = np.bincount(given.rows[hits], minlength=len(truth))
    either = sizes[0] + sizes[1] - common
    scores = np.where(either > 0, common / np.maximum(either, 1), both_empty)
    mean = float(scores.mean())
    if math.isnan(mean):
        raise InvalidSubmission(
            "a text has no words where the true one has none either, their overlap is not defined"
        )
    return mean
