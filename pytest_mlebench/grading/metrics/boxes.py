"""Labelled boxes and points written as texts: reading, overlaps, precision curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.errors import GraderError, InvalidSubmission

Array = np.ndarray[Any, np.dtype[Any]]

PAIRS_AT_ONCE = 100_000  # rectangles are clipped in portions of so many, to bound the memory


@dataclass(frozen=True)
class Boxes:
    """The boxes of many rows one after another: box k stands in row ``rows[k]``."""

    rows: Array
    labels: Array
    numbers: Array

    @cached_property
    def groups(self) -> Mapping[tuple[int, Any], Array]:
        """Return the positions of the boxes of each row and label, in the order of the text."""
        if not len(self.rows):
            return {}
        frame = pd.DataFrame({"row": self.rows, "label": self.labels})
        groups: Mapping[tuple[int, Any], Array] = frame.groupby(["row", "label"]).indices
        return groups


@dataclass(frozen=True)
class BoxFormat:
    """How boxes are written: groups of *size* tokens of which number *label* is a word."""

    size: int
    label: int | None = 0
    separator: str | None = " "  # None: any white space

    def read(self, ids: Iterable[Any], texts: Iterable[str]) -> Boxes:
        """Return the boxes of a submission, or name the row that cannot be read."""
        names = list(ids)
        lists = [text.split(self.separator) if text else [] for text in texts]
        counts = np.array([len(tokens) for tokens in lists], dtype=np.int64)
        if (counts % self.size).any():
            row = int(np.flatnonzero(counts % self.size)[0])
            between = "white space" if self.separator is None else "single blanks"
            raise InvalidSubmission(
                f"predictions must be groups of {self.size} tokens with {between} between them, "
                f"given: {counts[row]} tokens for id {names[row]}"
            )
        tokens = list(chain.from_iterable(lists))
        rows = np.repeat(np.arange(len(lists)), counts // self.size)
        columns = [
            self._floats(tokens[position :: self.size], [names, rows])
            for position in range(self.size)
            if position != self.label
        ]
        labels = [""] * len(rows) if self.label is None else tokens[self.label :: self.size]
        return Boxes(rows, np.array(labels, dtype=object), np.stack(columns, axis=1))

    def read_truth(self, ids: Iterable[Any], cells: pd.Series[Any]) -> Boxes:
        """Return the boxes of the answers, where an empty cell has none."""
        try:
            return self.read(ids, cells.astype(str).where(cells.notna(), ""))
        except InvalidSubmission as problem:
            raise GraderError(f"the answers are damaged: {problem}") from problem

    def _floats(self, tokens: list[str], where: list[Any]) -> Array:
        try:
            return np.fromiter(map(float, tokens), np.float64, len(tokens))
        except ValueError:
            position = next(k for k, token in enumerate(tokens) if not _is_float(token))
        names, rows = where
        raise InvalidSubmission(
            f"a prediction must have a number here, given: {tokens[position][:40]!r} "
            f"for id {names[rows[position]]}"
        )


def corner_iou(some: Array, others: Array) -> Array:
    """Return intersection over union of all pairs of boxes (x_min, y_min, x_max, y_max)."""
    one, other = some[:, None, :], others[None, :, :]
    with np.errstate(invalid="ignore", over="ignore"):
        sides = np.fmin(one[..., 2:], other[..., 2:]) - np.fmax(one[..., :2], other[..., :2])
        common = np.prod(np.clip(sides, 0, None), axis=2)
        union = _area(one) + _area(other) - common
        shares = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return np.asarray(np.nan_to_num(shares, nan=0.0))


def precision_recall(hits: Array, truths: int) -> tuple[Array, Array]:
    """Return both curves over predictions in order of falling confidence.

    The precision is made non-increasing: each value is the best that any longer list reaches.
    *hits* may have several columns, a curve for each.
    """
    found = np.cumsum(hits, axis=0)
    given = np.arange(1, len(hits) + 1).reshape(-1, *[1] * (hits.ndim - 1))
    precision = np.maximum.accumulate((found / given)[::-1], axis=0)[::-1]
    return precision, found / truths


def average_precision(hits: Array, confidence: Array) -> float:
    """Return the sum of precisions at each confidence, weighted by the recall gained there."""
    order = np.argsort(-confidence, kind="stable")
    found = np.cumsum(hits[order])
    last = np.flatnonzero(np.append(np.diff(confidence[order]), 1))  # of those that are equal
    gained = np.diff(found[last], prepend=0) / found[-1]
    return float((gained * found[last] / (last + 1)).sum())


def rectangle_overlaps(some: Array, others: Array) -> Array:
    """Return the common area of all pairs of turned rectangles (x, y, length, width, yaw)."""
    shape = len(some), len(others)
    gaps = np.linalg.norm(some[:, None, :2] - others[None, :, :2], axis=2)
    reach = np.hypot(some[:, 2], some[:, 3])[:, None] + np.hypot(others[:, 2], others[:, 3])
    near = np.flatnonzero(gaps <= reach / 2)
    areas = np.zeros(shape)
    for start in range(0, len(near), PAIRS_AT_ONCE):
        portion = near[start : start + PAIRS_AT_ONCE]
        i, j = np.unravel_index(portion, shape)
        areas.flat[portion] = _common_area(some[i], others[j])
    return areas


def rectangle_corners(length: Array, width: Array, yaw: Array) -> Array:
    """Return the four corners of turned rectangles around the origin, counter-clockwise."""
    along = np.stack([np.cos(yaw), np.sin(yaw)], axis=1) * length[:, None] / 2
    across = np.stack([-np.sin(yaw), np.cos(yaw)], axis=1) * width[:, None] / 2
    return np.stack([along - across, along + across, across - along, -along - across], axis=1)


def _common_area(one: Array, other: Array) -> Array:
    """Return the common area of rectangles pair by pair, by clipping the other to the one."""
    x, y = (other[:, :2] - one[:, :2]).T
    cosine, sine = np.cos(one[:, 4]), np.sin(one[:, 4])
    centre = np.stack([cosine * x + sine * y, cosine * y - sine * x], axis=1)
    points = centre[:, None, :] + rectangle_corners(
        other[:, 2], other[:, 3], other[:, 4] - one[:, 4]
    )
    for axis in (0, 1):
        points = _clipped(points, axis, one[:, 2 + axis] / 2)
    following = np.roll(points, -1, axis=1)
    cross = points[..., 0] * following[..., 1] - points[..., 1] * following[..., 0]
    return np.asarray(np.abs(cross.sum(axis=1)) / 2)


def _clipped(points: Array, axis: int, half: Array) -> Array:
    """Return polygons cut to -half … half on one axis.

    Edges get a point where they cross a border; what lies outside is then pushed onto the border,
    where it encloses no area.
    """
    edges = np.roll(points, -1, axis=1) - points
    with np.errstate(divide="ignore", invalid="ignore"):
        borders = np.stack([-half, half], axis=1)[:, None, :]
        shares = (borders - points[..., axis, None]) / edges[..., axis, None]
    shares = np.sort(np.clip(np.nan_to_num(shares, nan=0.0), 0, 1), axis=2)
    shares = np.concatenate([np.zeros((*shares.shape[:2], 1)), shares], axis=2)
    finer = points[:, :, None, :] + shares[..., None] * edges[:, :, None, :]
    finer = finer.reshape(len(points), -1, 2)
    finer[..., axis] = np.clip(finer[..., axis], -half[:, None], half[:, None])
    return np.asarray(finer)


def _area(boxes: Array) -> Array:
    return np.asarray((boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1]))


def _is_float(token: str) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True
