"""F1 over all pages of points that lie in a box of the same character."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.grading.metrics.boxes import (
    Boxes,
    BoxFormat,
    joined,
    keys_of,
    pairs_of,
    served,
)
from pytest_mlebench.grading.tokens import as_texts, row_portions

GRADE_CHECKS = True
POINTS, BOXES = BoxFormat(3), BoxFormat(5)
CHARS_AT_ONCE = 2**20
LONG_CHARS = 4 * CHARS_AT_ONCE

Array = np.ndarray[Any, np.dtype[Any]]


def check(submission: pd.DataFrame) -> None:
    """Refuse labels that are not groups of a code and two numbers."""
    for _ in POINTS.portions(submission["image_id"], submission["labels"]):
        pass


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return F1 of all points and boxes; 0 where precision or recall is 0 or not defined."""
    true, given = as_texts(answers["labels"]), as_texts(submission["labels"])
    hits = boxes = points = 0
    for rows in row_portions(true, given, chars=CHARS_AT_ONCE):
        truth = BOXES.read_truth(answers["image_id"].iloc[rows], pd.Series(true[rows]))
        guesses, count = _points(truth, submission["image_id"].iloc[rows], given[rows])
        hits += len(served(*_inside(truth, guesses)))
        boxes += len(truth.rows)
        points += count
    if not hits:
        return 0.0
    precision, recall = hits / points, hits / boxes
    return 2 * precision * recall / (precision + recall)


def _points(truth: Boxes, ids: pd.Series[str], texts: list[str]) -> tuple[Boxes, int]:
    """Return points and how many there are; of a very long row only those that may be taken."""
    if sum(map(len, texts)) <= LONG_CHARS:
        points = POINTS.read(ids, texts)
        return points, len(points.rows)
    kept, count = [], 0
    for part in POINTS.portions(ids, texts):
        kept.append(part.where(np.unique(_inside(truth, part)[1])))
        count += len(part.rows)
    return joined(kept), count


def _inside(truth: Boxes, points: Boxes) -> Array:
    """Return the pairs of a box and a point of the same character in it that may matter."""
    low, high = truth.numbers[:, :2], truth.numbers[:, :2] + truth.numbers[:, 2:]
    keys = keys_of(truth, points)
    rivals = np.bincount(keys[0])[keys[0]]
    found = [np.empty((2, 0), dtype=np.int64)]
    for boxes, places in pairs_of(*keys):
        point = points.numbers[places]
        inside = ((low[boxes] < point) & (point < high[boxes])).all(axis=1)
        pairs = np.stack([boxes[inside], places[inside]])
        # a box needs no more points than there are boxes that may take one before
        places_of_boxes = np.arange(pairs.shape[1])
        is_new = np.diff(pairs[0], prepend=-1) > 0
        rank = places_of_boxes - np.maximum.accumulate(np.where(is_new, places_of_boxes, 0))
        found.append(pairs[:, rank < rivals[pairs[0]]])
    return np.concatenate(found, axis=1)
