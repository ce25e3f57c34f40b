"""Mean over classes of the average precision of boxes at IoU above 0.5."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench import InvalidSubmission
from pytest_mlebench.grading.metrics.boxes import (
    Boxes,
    BoxFormat,
    average_precision,
    corner_iou,
    pairs_of,
    served,
)

GRADE_CHECKS = True
FORMAT = BoxFormat(6, separator=None)
IOU = 0.5

Array = np.ndarray[Any, np.dtype[Any]]


def check(submission: pd.DataFrame) -> None:
    """Refuse predictions that are not groups of a class and five numbers, the first finite."""
    _read(submission)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean over the classes that occur in the answers."""
    truth = FORMAT.read_truth(answers["id"], answers["PredictionString"])
    boxes = _read(submission)
    classes = np.unique(truth.labels)
    return float(np.mean([_precision(name, truth, boxes, len(answers)) for name in classes]))


def _read(submission: pd.DataFrame) -> Boxes:
    boxes = FORMAT.read(submission["id"], submission["PredictionString"])
    confidence = boxes.numbers[:, 0]
    wrong = np.flatnonzero(~np.isfinite(confidence))
    if len(wrong):
        name = submission["id"].iloc[boxes.rows[wrong[0]]]
        raise InvalidSubmission(
            f"a confidence must be a finite number, given: {confidence[wrong[0]]} for id {name}"
        )
    return boxes


def _precision(name: int, truth: Boxes, boxes: Boxes, rows: int) -> float:
    """Return the average precision of one class over all rows, studies and images alike.

    A missed box counts as found with confidence 0, and a row that has the class on neither side
    as a false alarm with confidence 0.
    """
    wanted, given = truth.labels == name, boxes.labels == name
    confidence = boxes.numbers[given, 0]
    order = np.argsort(-confidence, kind="stable")
    places = np.flatnonzero(given)[order]
    hits = np.zeros(len(places), dtype=bool)
    hits[_matched(truth, np.flatnonzero(wanted), boxes, places)] = True
    missed = np.count_nonzero(wanted) - np.count_nonzero(hits)
    absent = rows - len(np.union1d(truth.rows[wanted], boxes.rows[given]))
    return average_precision(
        np.concatenate([hits, np.ones(missed, bool), np.zeros(absent, bool)]),
        np.concatenate([confidence[order], np.zeros(missed + absent)]),
    )


def _matched(truth: Boxes, wanted: Array, boxes: Boxes, given: Array) -> Array:
    """Give each box in turn the free truth that it covers best; return which have got one."""
    takers, things, shares = [], [], []
    for mine, theirs in pairs_of(boxes.rows[given], truth.rows[wanted]):
        share = corner_iou(boxes.numbers[given[mine], 1:], truth.numbers[wanted[theirs], 1:])
        close = share > IOU
        takers.append(mine[close])
        things.append(theirs[close])
        shares.append(share[close])
    if not takers:
        return np.empty(0, dtype=np.int64)
    mine, theirs, share = map(np.concatenate, (takers, things, shares))
    best = np.lexsort((theirs, -share, mine))
    return served(mine[best], theirs[best])
