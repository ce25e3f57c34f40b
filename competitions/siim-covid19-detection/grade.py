"""Mean over classes of the average precision of boxes at IoU above 0.5."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench import InvalidSubmission
from pytest_mlebench.grading.metrics.boxes import Boxes, BoxFormat, average_precision, corner_iou

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


def _precision(name: str, truth: Boxes, boxes: Boxes, rows: int) -> float:
    """Return the average precision of one class over all rows, studies and images alike.

    A missed box counts as found with confidence 0, and a row that has the class on neither side
    as a false alarm with confidence 0.
    """
    wanted = {row: at for (row, label), at in truth.groups.items() if label == name}
    given = {row: at for (row, label), at in boxes.groups.items() if label == name}
    hits = np.zeros(len(boxes.rows), dtype=bool)
    for row in wanted.keys() & given.keys():
        at = given[row]
        at = at[np.argsort(-boxes.numbers[at, 0], kind="stable")]
        hits[at] = _matched(truth.numbers[wanted[row], 1:], boxes.numbers[at, 1:])
    mine = boxes.labels == name
    missed = np.count_nonzero(truth.labels == name) - np.count_nonzero(hits)
    absent = rows - len(wanted.keys() | given.keys())
    return average_precision(
        np.concatenate([hits[mine], np.ones(missed, bool), np.zeros(absent, bool)]),
        np.concatenate([boxes.numbers[mine, 0], np.zeros(missed + absent)]),
    )


def _matched(truth: Array, boxes: Array) -> Array:
    """Give each box in turn the free truth that it covers best; tell which have got one."""
    shares = corner_iou(boxes, truth)
    matched = np.zeros(len(boxes), dtype=bool)
    for box in np.flatnonzero((shares > IOU).any(axis=1)):
        best = shares[box].argmax()
        if shares[box, best] > IOU:
            matched[box] = True
            shares[:, best] = 0
    return matched
