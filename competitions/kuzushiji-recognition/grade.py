"""F1 over all pages of points that lie in a box of the same character."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pytest_mlebench.grading.metrics.boxes import Boxes, BoxFormat, keys_of, pairs_of, served
from pytest_mlebench.grading.tokens import as_texts, row_portions

GRADE_CHECKS = True
POINTS, BOXES = BoxFormat(3), BoxFormat(5)
CHARS_AT_ONCE = 2**20


def check(submission: pd.DataFrame) -> None:
    """Refuse labels that are not groups of a code and two numbers."""
    POINTS.read(submission["image_id"], submission["labels"])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return F1 of all points and boxes; 0 where precision or recall is 0 or not defined."""
    true, given = as_texts(answers["labels"]), as_texts(submission["labels"])
    hits = boxes = points = 0
    for rows in row_portions(true, given, chars=CHARS_AT_ONCE):
        truth = BOXES.read_truth(answers["image_id"].iloc[rows], pd.Series(true[rows]))
        guesses = POINTS.read(submission["image_id"].iloc[rows], given[rows])
        hits += _hits(truth, guesses)
        boxes += len(truth.rows)
        points += len(guesses.rows)
    if not hits:
        return 0.0
    precision, recall = hits / points, hits / boxes
    return 2 * precision * recall / (precision + recall)


def _hits(truth: Boxes, points: Boxes) -> int:
    """Give each box in turn the first free point inside it; return how many have got one."""
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
    return len(served(*np.concatenate(found, axis=1)))
