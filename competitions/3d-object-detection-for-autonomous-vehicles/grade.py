"""Mean over samples, ten IoU thresholds and classes of the average precision of boxes in 3D."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench import InvalidSubmission
from pytest_mlebench.grading.metrics.boxes import (
    Boxes,
    BoxFormat,
    BoxGroups,
    pairs_of,
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
HOPELESS = 0.49  # less than any threshold, however numbers are rounded
BOXES_AT_ONCE = 10_000  # to bound the memory
RIGHT_ANGLE = 1e-8  # how far from zero the product of two sides at a corner may be

Array = np.ndarray[Any, np.dtype[Any]]


def check(submission: pd.DataFrame) -> None:
    """Refuse predictions that are not groups of eight numbers and a class, or no boxes."""
    for _ in _portions(submission):
        pass


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean over samples of the mean over the classes that occur in the sample."""
    truth = BoxGroups.of(FORMAT.read_truth(answers["Id"], answers["PredictionString"]))
    ranked = _ranked(truth, submission)
    precisions = np.mean([_precisions(ranked, truth, bar) for bar in THRESHOLDS], axis=0)
    means = pd.Series(precisions).groupby(truth.rows).mean()
    return float(means.reindex(range(len(answers))).to_numpy().mean())


@dataclass(frozen=True)
class Ranked:
    """The boxes that have a group, in order of these, the surest first."""

    groups: Array
    best: Array  # which truth they cover best
    shares: Array  # and how well; less than any threshold: by less than half

    @property
    def ranks(self) -> Array:
        """Return the place of each in its group, from 1."""
        return _numbered(self.groups)


def _portions(submission: pd.DataFrame) -> Iterator[Boxes]:
    texts = ["" if text.isspace() else text for text in submission["PredictionString"].tolist()]
    for boxes in FORMAT.portions(submission["Id"], texts):
        _refuse_impossible(boxes, submission["Id"])
        yield boxes


def _ranked(truth: BoxGroups, submission: pd.DataFrame) -> Ranked:
    """Return what became of all boxes, some of which are in memory at a time."""
    most = FORMAT.most(submission["PredictionString"])
    confidence, shares = Growing(most, np.float64), Growing(most, np.float64)
    best, groups = Growing(most, np.int32), Growing(most, np.int32)
    for boxes in _portions(submission):
        group = truth.groups_of(boxes)
        known = np.flatnonzero(group >= 0)
        found = _best(boxes.numbers[known], group[known], truth)
        confidence.add(boxes.numbers[known, CONFIDENCE])
        groups.add(group[known].astype(np.int32))
        best.add(found[0])
        shares.add(found[1])
    order = _order(groups.values, confidence.values)
    return Ranked(groups.values[order], best.values[order], shares.values[order])


def _best(boxes: Array, groups: Array, truth: BoxGroups) -> tuple[Array, Array]:
    """Return for each box which truth of its group it covers best, and how well."""
    best, shares = np.zeros(len(boxes), dtype=np.int32), np.zeros(len(boxes))
    least, most = groups.min(initial=len(truth.keys)), groups.max(initial=-1)
    first, last = np.searchsorted(truth.groups, [least, most + 1])
    for mine, theirs in pairs_of(groups - least, truth.groups[first:last] - least):
        share = _iou(boxes[mine], truth.boxes.numbers[first + theirs])
        starts = np.flatnonzero(np.diff(mine, prepend=-1))
        highest = np.repeat(np.maximum.reduceat(share, starts), np.diff(starts, append=len(mine)))
        candidates = np.flatnonzero((share == highest) & (share > shares[mine]))
        candidates = candidates[np.diff(mine[candidates], prepend=-1) > 0]  # the first of equals
        best[mine[candidates]] = first + theirs[candidates]
        shares[mine[candidates]] = share[candidates]
    return best, shares


def _precisions(ranked: Ranked, truth: BoxGroups, bar: float) -> Array:
    """Return the average precision of each group if boxes above a threshold try their best truth.

    The precision at a hit is the best that any longer list reaches, which ends with a hit.
    """
    above = np.flatnonzero(ranked.shares > bar)
    hits = above[~pd.Series(ranked.best[above]).duplicated().to_numpy()]  # once taken it is gone
    groups = ranked.groups[hits][::-1]
    precision = pd.Series((_numbered(groups[::-1]) / ranked.ranks[hits])[::-1])
    reached = precision.groupby(groups).cummax()
    sums = np.bincount(groups, reached, minlength=len(truth.keys))
    return sums / np.bincount(truth.groups)


def _numbered(groups: Array) -> Array:
    """Return the place of each in its group, from 1, where these are in order."""
    return np.arange(1, len(groups) + 1) - np.searchsorted(groups, groups)


def _order(groups: Array, confidence: Array) -> Array:
    """Return the order of boxes by group, and in each by confidence, the highest first."""
    order = np.lexsort((-confidence, groups))
    strange = np.unique(groups[np.isnan(confidence)])
    firsts = np.searchsorted(groups, strange, sorter=order)
    lasts = np.searchsorted(groups, strange, side="right", sorter=order)
    for first, last in zip(firsts, lasts, strict=True):
        # Python's sort and not numpy's: it leaves confidences that are not numbers where they stand
        given = np.sort(order[first:last])
        order[first:last] = sorted(given, key=confidence.__getitem__, reverse=True)
    return order


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
    """Return intersection over union of volumes pair by pair; 0 where it cannot reach a bar."""
    low = np.fmax(boxes[:, Z] - boxes[:, HEIGHT] / 2, truth[:, Z] - truth[:, HEIGHT] / 2)
    high = np.fmin(boxes[:, Z] + boxes[:, HEIGHT] / 2, truth[:, Z] + truth[:, HEIGHT] / 2)
    heights = np.clip(high - low, 0, None)
    areas = [side[:, LENGTH] * side[:, WIDTH] for side in (boxes, truth)]
    volumes = boxes[:, SIZES].prod(axis=1) + truth[:, SIZES].prod(axis=1)
    most = np.fmin(*areas) * heights
    near = np.flatnonzero(most > (volumes - most) * HOPELESS)
    common = np.zeros(len(boxes))
    common[near] = heights[near] * rectangle_overlaps(
        boxes[near][:, GROUND], truth[near][:, GROUND]
    )
    return np.clip(common / (volumes - common), 0, 1)
