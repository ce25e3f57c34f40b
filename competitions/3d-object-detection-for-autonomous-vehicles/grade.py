"""Mean over samples, ten IoU thresholds and classes of the average precision of boxes in 3D."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench import InvalidSubmission
from pytest_mlebench.grading.metrics.boxes import (
    Boxes,
    BoxFormat,
    precision_recall,
    rectangle_corners,
    rectangle_overlaps,
)
from pytest_mlebench.grading.tokens import Growing

GRADE_CHECKS = True
FORMAT = BoxFormat(9, label=8)
CONFIDENCE, X, Y, Z, WIDTH, LENGTH, HEIGHT, YAW = range(8)
GROUND = [X, Y, LENGTH, WIDTH, YAW]
SIZES = [WIDTH, LENGTH, HEIGHT]
THRESHOLDS = np.arange(0.5, 1.0, 0.05)
BOXES_AT_ONCE = 10_000  # to bound the memory
RIGHT_ANGLE = 1e-8  # how far from zero the product of two sides at a corner may be

Array = np.ndarray[Any, np.dtype[Any]]


def check(submission: pd.DataFrame) -> None:
    """Refuse predictions that are not groups of eight numbers and a class, or no boxes."""
    for _ in _portions(submission):
        pass


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean over samples of the mean over the classes that occur in the sample."""
    truth = FORMAT.read_truth(answers["Id"], answers["PredictionString"])
    scores = pd.DataFrame(truth.groups.keys(), columns=["sample", "class"])
    scores["precision"] = _precisions(truth, submission)
    means = scores.groupby("sample")["precision"].mean()
    return float(means.reindex(range(len(answers))).to_numpy().mean())


def _portions(submission: pd.DataFrame) -> Iterator[Boxes]:
    texts = ["" if text.isspace() else text for text in submission["PredictionString"]]
    for boxes in FORMAT.portions(submission["Id"], texts):
        _refuse_impossible(boxes, submission["Id"])
        yield boxes


def _precisions(truth: Boxes, submission: pd.DataFrame) -> list[float]:
    """Return the average precision for each class and sample of the truth."""
    numbers = {key: number for number, key in enumerate(truth.groups)}
    most = FORMAT.most(submission["PredictionString"])
    confidence, shares = Growing(most, np.float64), Growing(most, np.float64)
    best, groups = Growing(most, np.int32), Growing(most, np.int32)
    for boxes in _portions(submission):
        for key, given in boxes.groups.items():
            if key in numbers:
                found = _best(boxes.numbers, given, truth.numbers[truth.groups[key]])
                confidence.add(boxes.numbers[given, CONFIDENCE])
                best.add(found[0].astype(np.int32))
                shares.add(found[1])
                groups.add(np.full(len(given), numbers[key], dtype=np.int32))
    order = np.argsort(groups.values, kind="stable")
    ends = np.searchsorted(groups.values, np.arange(len(numbers)), side="right", sorter=order)
    precisions = []
    for part, true in zip(np.split(order, ends[:-1]), truth.groups.values(), strict=True):
        given = part[_descending(confidence.values[part])]
        precisions.append(_precision(best.values[given], shares.values[given], len(true)))
    return precisions


def _precision(best: Array, shares: Array, truths: int) -> float:
    """Return the average precision of a class in a sample, averaged over the thresholds."""
    return float(np.mean([_reached(best, shares > bar, truths) for bar in THRESHOLDS]))


def _reached(best: Array, above: Array, truths: int) -> float:
    """Return the average precision if boxes *above* a threshold try their best truth, in turn."""
    candidates = np.flatnonzero(above)
    _, first = np.unique(best[candidates], return_index=True)
    hits = np.zeros(len(best), dtype=bool)
    hits[candidates[first]] = True  # once taken a truth is gone
    precision, _ = precision_recall(hits, truths)
    return float(precision[hits].sum() / truths)


def _best(boxes: Array, given: Array, true: Array) -> tuple[Array, Array]:
    """Return for each of the given boxes which truth it covers best, and how well."""
    best, shares = np.empty(len(given), dtype=np.int64), np.empty(len(given))
    for start in range(0, len(given), BOXES_AT_ONCE):
        part = slice(start, start + BOXES_AT_ONCE)
        found = _iou(boxes[given[part]], true)
        best[part], shares[part] = found.argmax(axis=1), found.max(axis=1)
    return best, shares


def _descending(confidence: Array) -> Array:
    """Return the order of confidences, the highest first, equal ones as they are."""
    if not np.isnan(confidence).any():
        return np.argsort(-confidence, kind="stable")
    # Python's sort and not numpy's: it leaves confidences that are not numbers where they stand
    return np.array(
        sorted(range(len(confidence)), key=confidence.tolist().__getitem__, reverse=True)
    )


def _refuse_impossible(given: Boxes, ids: pd.Series[str]) -> None:
    """Refuse boxes that have no size or no place."""
    for start in range(0, len(given.numbers), BOXES_AT_ONCE):
        boxes = given.numbers[start : start + BOXES_AT_ONCE]
        for wrong, problem in _impossible(boxes):
            if wrong.any():
                first = int(np.flatnonzero(wrong)[0])
                shown = " ".join(f"{number:g}" for number in boxes[first])
                name = ids.iloc[given.rows[start + first]]
                raise InvalidSubmission(f"{problem}, given: {shown} for id {name}")


def _impossible(boxes: Array) -> Iterator[tuple[Array, str]]:
    """Yield which boxes are wrong, and what is wrong with them."""
    yield np.isnan(boxes[:, X:]).any(axis=1), "a box must have numbers"
    yield (boxes[:, SIZES] <= 0).any(axis=1), "the sizes of a box must be positive"
    with np.errstate(all="ignore"):
        corners = boxes[:, None, [X, Y]] + rectangle_corners(*boxes[:, [LENGTH, WIDTH, YAW]].T)
        sides = np.roll(corners, -1, axis=1) - corners
        products = (sides * np.roll(sides, 1, axis=1)).sum(axis=2)
    yield ~(np.abs(products) <= RIGHT_ANGLE).all(axis=1), "a box is too large or too far away"


def _iou(boxes: Array, truth: Array) -> Array:
    """Return intersection over union of the volumes of all pairs."""
    low = np.fmax.outer(boxes[:, Z] - boxes[:, HEIGHT] / 2, truth[:, Z] - truth[:, HEIGHT] / 2)
    high = np.fmin.outer(boxes[:, Z] + boxes[:, HEIGHT] / 2, truth[:, Z] + truth[:, HEIGHT] / 2)
    common = rectangle_overlaps(boxes[:, GROUND], truth[:, GROUND]) * np.clip(high - low, 0, None)
    volumes = np.add.outer(boxes[:, SIZES].prod(axis=1), truth[:, SIZES].prod(axis=1))
    return np.clip(common / (volumes - common), 0, 1)
