"""F1 over all pages of points that lie in a box of the same character."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pytest_mlebench.grading.metrics.boxes import Boxes, BoxFormat, keys_of, pairs_of, served

GRADE_CHECKS = True
POINTS, BOXES = BoxFormat(3), BoxFormat(5)


def check(submission: pd.DataFrame) -> None:
    """Refuse labels that are not groups of a code and two numbers."""
    POINTS.read(submission["image_id"], submission["labels"])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return F1 of all points and boxes; 0 where precision or recall is 0 or not defined."""
    truth = BOXES.read_truth(answers["image_id"], answers["labels"])
    points = POINTS.read(submission["image_id"], submission["labels"])
    hits = _hits(truth, points)
    if not hits:
        return 0.0
    precision, recall = hits / len(points.rows), hits / len(truth.rows)
    return 2 * precision * recall / (precision + recall)


def _hits(truth: Boxes, points: Boxes) -> int:
    """Give each box in turn the first free point inside it; return how many have got one."""
    low, high = truth.numbers[:, :2], truth.numbers[:, :2] + truth.numbers[:, 2:]
    keys = keys_of(truth, points)
    rivals = pd.Series(keys[0]).groupby(keys[0]).transform("size").to_numpy()
    found = [np.empty((2, 0), dtype=np.int64)]
    for boxes, places in pairs_of(*keys):
        point = points.numbers[places]
        inside = ((low[boxes] < point) & (point < high[boxes])).all(axis=1)
        pairs = np.stack([boxes[inside], places[inside]])
        # a box needs no more points than there are boxes that may take one before
        rank = pd.Series(pairs[0]).groupby(pairs[0]).cumcount().to_numpy()
        found.append(pairs[:, rank < rivals[pairs[0]]])
    return len(served(*np.concatenate(found, axis=1)))
