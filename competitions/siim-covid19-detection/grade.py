"""Mean over classes of the average precision of boxes at IoU above 0.5."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench import InvalidSubmission
from pytest_mlebench.grading.metrics.boxes import (
    Boxes,
    BoxFormat,
    average_precision,
    corner_iou,
    joined,
    keys_of,
    pairs_of,
    served,
)
from pytest_mlebench.grading.tokens import Growing

GRADE_CHECKS = True
FORMAT = BoxFormat(6, separator=None)
IOU = 0.5
MANY_BOXES = 16  # in a row: so many are worth a look at who may matter at all

Array = np.ndarray[Any, np.dtype[Any]]


def check(submission: pd.DataFrame) -> None:
    """Refuse predictions that are not groups of a class and five numbers, the first finite."""
    for _ in _portions(submission):
        pass


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean over the classes that occur in the answers."""
    truth = FORMAT.read_truth(answers["id"], answers["PredictionString"])
    names, classes = np.unique(truth.labels, return_inverse=True)
    truth = Boxes(truth.rows, classes, truth.numbers)
    has_any = np.zeros((len(names), len(answers)), dtype=bool)  # of a class, on either side
    has_any[truth.labels, truth.rows] = True
    most = FORMAT.most(submission["PredictionString"])
    confidence, labels = Growing(most, np.float64), Growing(most, np.int16)
    candidates = [truth.where(slice(0, 0))]
    for boxes in _portions(submission):
        known = _of_classes(boxes, names)
        has_any[known.labels, known.rows] = True
        confidence.add(known.numbers[:, 0])
        labels.add(known.labels)
        if known.is_dense(MANY_BOXES):
            # whoever gets nothing among some gets nothing among all, and takes nothing from others
            known = _matched(truth.where(truth.beside(known)), known)
        candidates.append(known)
    hits = _matched(truth, joined(candidates))
    return float(
        np.mean(
            [
                _precision(
                    hits.numbers[hits.labels == name, 0],
                    confidence.values[labels.values == name],
                    np.count_nonzero(truth.labels == name),
                    np.count_nonzero(~has_any[name]),
                )
                for name in range(len(names))
            ]
        )
    )


def _portions(submission: pd.DataFrame) -> Iterator[Boxes]:
    for boxes in FORMAT.portions(submission["id"], submission["PredictionString"]):
        confidence = boxes.numbers[:, 0]
        wrong = np.flatnonzero(~np.isfinite(confidence))
        if len(wrong):
            name = submission["id"].iloc[boxes.rows[wrong[0]]]
            raise InvalidSubmission(
                f"a confidence must be a finite number, given: {confidence[wrong[0]]} for id {name}"
            )
        yield boxes


def _of_classes(boxes: Boxes, names: Array) -> Boxes:
    """Return the boxes of classes that there are, with the numbers of these for labels."""
    places = np.minimum(np.searchsorted(names, boxes.labels), len(names) - 1)
    known = names[places] == boxes.labels
    return Boxes(boxes.rows[known], places[known].astype(np.int16), boxes.numbers[known])


def _precision(hits: Array, confidence: Array, truths: int, absent: int) -> float:
    """Return the average precision of one class over all rows, studies and images alike.

    A missed box counts as found with confidence 0, and a row that has the class on neither side
    as a false alarm with confidence 0.
    """
    missed = truths - len(hits)
    return average_precision(
        np.concatenate([hits, np.zeros(missed)]),
        np.concatenate([confidence, np.zeros(missed + absent)]),
    )


def _matched(truth: Boxes, boxes: Boxes) -> Boxes:
    """Give each box, the surest first, the free truth that it covers best; return who got one."""
    order = np.argsort(-boxes.numbers[:, 0], kind="stable")
    keys, true_keys = keys_of(boxes, truth)
    takers, things, shares = [], [], []
    for mine, theirs in pairs_of(keys[order], true_keys):
        share = corner_iou(boxes.numbers[order[mine], 1:], truth.numbers[theirs, 1:])
        close = share > IOU
        takers.append(mine[close])
        things.append(theirs[close])
        shares.append(share[close])
    if not takers:
        return boxes.where(order[:0])  # a slice would keep all of them in memory
    mine, theirs, share = map(np.concatenate, (takers, things, shares))
    best = np.lexsort((theirs, -share, mine))
    return boxes.where(np.sort(order[served(mine[best], theirs[best])]))
