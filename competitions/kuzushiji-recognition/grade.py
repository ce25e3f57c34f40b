"""F1 over all pages of points that lie in a box of the same character."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.grading.metrics.boxes import BoxFormat

POINTS, BOXES = BoxFormat(3), BoxFormat(5)

Array = np.ndarray[Any, np.dtype[Any]]


def check(submission: pd.DataFrame) -> None:
    """Refuse labels that are not groups of a code and two numbers."""
    POINTS.read(submission["image_id"], submission["labels"])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return F1 of all points and boxes; 0 where precision or recall is 0 or not defined."""
    truth = BOXES.read_truth(answers["image_id"], answers["labels"])
    points = POINTS.read(submission["image_id"], submission["labels"])
    boxes_of = truth.groups
    hits = sum(
        _hits(truth.numbers[boxes_of[key]], points.numbers[places])
        for key, places in points.groups.items()
        if key in boxes_of
    )
    if not hits:
        return 0.0
    precision, recall = hits / len(points.rows), hits / len(truth.rows)
    return 2 * precision * recall / (precision + recall)


def _hits(boxes: Array, points: Array) -> int:
    """Give each box in turn the first free point inside it; return how many have got one."""
    low, high = boxes[:, None, :2], boxes[:, None, :2] + boxes[:, None, 2:]
    inside = ((low < points) & (points < high)).all(axis=2)
    free = np.ones(len(points), dtype=bool)
    for candidates in inside:
        usable = candidates & free
        if usable.any():
            free[usable.argmax()] = False
    return int(len(free) - free.sum())
