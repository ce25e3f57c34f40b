"""Labelled boxes and points written as texts: reading, overlaps, precision curves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.errors import GraderError, InvalidSubmission
from pytest_mlebench.grading.tokens import (
    Growing,
    as_texts,
    floats,
    max_tokens,
    split,
    token_hashes,
)

Array = np.ndarray[Any, np.dtype[Any]]

TABLE_PARTS = 4  # a table may have so many entries for each box
PAIRS_AT_ONCE = 100_000  # pairs are compared in portions of so many, to bound the memory


@dataclass(frozen=True)
class Boxes:
    """The boxes of many rows one after another: box k stands in row ``rows[k]``."""

    rows: Array
    labels: Array  # a number for each that is the same for the same label
    numbers: Array

    def where(self, chosen: Array) -> Boxes:
        """Return some of the boxes."""
        return Boxes(self.rows[chosen], self.labels[chosen], self.numbers[chosen])

    def beside(self, others: Boxes) -> slice:
        """Return which of these are in the rows that *others* are in; both are in order of rows."""
        if not len(others.rows):
            return slice(0, 0)
        first, last = others.rows[0], others.rows[-1]
        return slice(
            int(np.searchsorted(self.rows, first)),
            int(np.searchsorted(self.rows, last, side="right")),
        )

    def is_dense(self, most: int) -> bool:
        """Tell whether there are more than so many boxes in a row, on average."""
        return len(self.rows) > 0 and len(self.rows) > most * (self.rows[-1] - self.rows[0] + 1)


@dataclass(frozen=True)
class BoxGroups:
    """Boxes in order of their groups: a group is all boxes of a label in a row."""

    boxes: Boxes
    groups: Array  # of each box, from 0
    labels: Array  # that there are
    keys: Array  # of the groups: what row and label make

    @classmethod
    def of(cls, boxes: Boxes) -> BoxGroups:
        """Return the boxes in order, those of a group as they were."""
        labels, codes = np.unique(boxes.labels, return_inverse=True)
        keys = boxes.rows.astype(np.int64) * len(labels) + codes
        order = np.argsort(keys, kind="stable")
        found, groups = np.unique(keys[order], return_inverse=True)
        return cls(boxes.where(order), groups, labels, found)

    @property
    def rows(self) -> Array:
        """Return the row of each group."""
        return self.keys // max(1, len(self.labels))

    def groups_of(self, boxes: Boxes) -> Array:
        """Return the group that each of other boxes would be in; -1 where there is none."""
        if not len(self.keys):
            return np.full(len(boxes.rows), -1)
        codes = np.minimum(np.searchsorted(self.labels, boxes.labels), len(self.labels) - 1)
        keys = boxes.rows.astype(np.int64) * len(self.labels) + codes
        groups = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        is_known = (self.labels[codes] == boxes.labels) & (self.keys[groups] == keys)
        return np.where(is_known, groups, -1)


@dataclass(frozen=True)
class BoxFormat:
    """How boxes are written: groups of *size* tokens of which number *label* is a word."""

    size: int
    label: int | None = 0
    separator: str | None = " "  # None: any white space

    @property
    def width(self) -> int:
        """Return how many numbers a box has."""
        return self.size - (self.label is not None)

    def read(self, ids: Iterable[Any], texts: Iterable[str]) -> Boxes:
        """Return the boxes of a submission, or name the row that cannot be read."""
        cells = as_texts(texts)
        most = self.most(cells)
        rows, labels = Growing(most, np.int32), Growing(most, np.uint64)
        numbers = Growing(most, np.float64, self.width)
        for part in self.portions(ids, cells):
            rows.add(part.rows)
            labels.add(part.labels)
            numbers.add(part.numbers)
        return Boxes(rows.values, labels.values, numbers.values)

    def most(self, texts: Iterable[str]) -> int:
        """Return how many boxes texts can have at the most."""
        return max_tokens(as_texts(texts)) // self.size

    def portions(self, ids: Iterable[Any], texts: Iterable[str]) -> Iterator[Boxes]:
        """Yield the boxes some at a time, in order, where all together take much memory."""
        cells = as_texts(texts)
        filled = np.flatnonzero(np.fromiter(map(bool, cells), bool, len(cells)))
        is_label = np.arange(self.size) == (-1 if self.label is None else self.label)

        def refuse(row: int, token: str) -> Exception:
            return InvalidSubmission(
                f"a prediction must have a number here, given: {token[:40]!r} "
                f"for id {list(ids)[filled[row]]}"
            )

        for portion in split([cell for cell in cells if cell], self.separator, self.size):
            if (portion.counts % self.size).any():
                raise self._ragged(list(ids), cells)
            rows = np.repeat(filled[portion.rows], portion.counts // self.size).astype(np.int32)
            labels = np.zeros(len(rows), np.uint64)
            if self.label is not None:
                labels = token_hashes(portion.part(is_label, self.size))
            numbers = floats(portion.part(~is_label, self.size), self.width, refuse)
            yield Boxes(rows, labels, numbers)

    def read_truth(self, ids: Iterable[Any], cells: pd.Series[Any]) -> Boxes:
        """Return the boxes of the answers, where an empty cell has none."""
        try:
            return self.read(ids, cells)
        except InvalidSubmission as problem:
            raise GraderError(f"the answers are damaged: {problem}") from problem

    def _ragged(self, ids: Sequence[Any], texts: Sequence[str]) -> Exception:
        """Name the first row whose tokens are no whole groups."""
        counts = (len(text.split(self.separator)) if text else 0 for text in texts)
        row, count = next((row, n) for row, n in enumerate(counts) if n % self.size)
        between = "white space" if self.separator is None else "single spaces"
        return InvalidSubmission(
            f"predictions must be groups of {self.size} tokens with {between} between them, "
            f"given: {count} tokens for id {ids[row]}"
        )


def joined(parts: Sequence[Boxes]) -> Boxes:
    """Return the boxes of all parts, of which there is at least one."""
    return Boxes(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.numbers for part in parts]),
    )


def keys_of(*sides: Boxes) -> list[Array]:
    """Return for each box a number that is the same for the same row and label on all sides.

    All are below a few times the number of boxes.
    """
    labels, count = _small(np.concatenate([side.labels for side in sides]), 1)
    rows = np.concatenate([side.rows for side in sides]).astype(np.int64)
    keys, _ = _small(labels + count * rows, TABLE_PARTS)
    return np.split(keys, np.cumsum([len(side.rows) for side in sides])[:-1])


def _small(values: Array, parts: int) -> tuple[Array, int]:
    """Return numbers that are the same where the values are, and a bound that all are below.

    They are the values themselves where these are below so many times their number.
    """
    if len(values) and int(values.min()) >= 0 and int(values.max()) < parts * len(values):
        return values.astype(np.int64), int(values.max()) + 1
    codes, found = pd.factorize(values)
    return codes, len(found)


def pairs_of(some: Array, others: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the places of all pairs of equal keys, a portion at a time, in order of the first.

    The second ones of a first are in order, too.
    """
    order = np.argsort(others, kind="stable")
    begins, counts = _runs(some, others, order)
    ends = np.cumsum(counts)
    offsets = np.diff(ends, prepend=0) - ends + begins
    total = int(ends[-1]) if len(ends) else 0
    for start in range(0, total, PAIRS_AT_ONCE):
        stop = min(start + PAIRS_AT_ONCE, total)
        first, last = np.searchsorted(ends, [start, stop - 1], side="right")
        sizes = np.diff(np.minimum(ends[first : last + 1], stop), prepend=start)
        firsts = np.repeat(np.arange(first, last + 1), sizes)
        yield firsts, order[np.arange(start, stop) + offsets[firsts]]


def _runs(some: Array, others: Array, order: Array) -> tuple[Array, Array]:
    """Return for each key where its equals begin in the order of others, and how many they are."""
    least = min(some.min(initial=0), others.min(initial=0))
    most = max(some.max(initial=0), others.max(initial=0))
    if least >= 0 and most < TABLE_PARTS * (len(some) + len(others)):  # a table of all is small
        counts = np.bincount(others, minlength=most + 1)
        return (np.cumsum(counts) - counts)[some], counts[some]
    begins = np.searchsorted(others, some, side="left", sorter=order)
    return begins, np.searchsorted(others, some, side="right", sorter=order) - begins


def served(takers: Array, things: Array) -> Array:
    """Let each taker in turn take the first thing of its list that is free; return who got one.

    The lists are pairs of a taker and a thing, one list after the other.
    """
    is_wanted_twice = pd.Series(things).duplicated(keep=False).to_numpy()
    is_rival = pd.Series(takers).isin(takers[is_wanted_twice]).to_numpy()
    lucky: list[int] = []
    taken: set[int] = set()
    last = -1
    for taker, thing in zip(takers[is_rival].tolist(), things[is_rival].tolist(), strict=True):
        if taker != last and thing not in taken:
            taken.add(thing)
            last = taker
            lucky.append(taker)
    return np.concatenate([pd.unique(takers[~is_rival]), np.array(lucky, dtype=takers.dtype)])


def corner_iou(some: Array, others: Array) -> Array:
    """Return intersection over union of boxes (x_min, y_min, x_max, y_max) pair by pair."""
    with np.errstate(invalid="ignore", over="ignore"):
        sides = np.fmin(some[..., 2:], others[..., 2:]) - np.fmax(some[..., :2], others[..., :2])
        common = np.prod(np.clip(sides, 0, None), axis=-1)
        union = _area(some) + _area(others) - common
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
    """Return the sum of precisions at each confidence, weighted by the recall gained there.

    *hits* are the confidences of what is right, *confidence* those of everything.
    """
    values, gained = (part[::-1] for part in np.unique(hits, return_counts=True))
    given = len(confidence) - np.searchsorted(np.sort(confidence), values)  # as sure, or surer
    return float((gained / len(hits) * np.cumsum(gained) / given).sum())


def rectangle_overlaps(some: Array, others: Array) -> Array:
    """Return the common area of turned rectangles (x, y, length, width, yaw) pair by pair."""
    gaps = np.hypot(*(some[:, :2] - others[:, :2]).T)
    reach = np.hypot(some[:, 2], some[:, 3]) + np.hypot(others[:, 2], others[:, 3])
    near = np.flatnonzero(gaps <= reach / 2)
    areas = np.zeros(len(some))
    areas[near] = _common_area(some[near], others[near])
    return areas


def rectangle_corners(length: Array, width: Array, yaw: Array) -> Array:
    """Return the four corners of turned rectangles around the origin, counter-clockwise."""
    along = np.stack([np.cos(yaw), np.sin(yaw)], axis=1) * length[:, None] / 2
    across = np.stack([-np.sin(yaw), np.cos(yaw)], axis=1) * width[:, None] / 2
    return np.stack([along - across, along + across, across - along, -along - across], axis=1)


def _common_area(one: Array, other: Array) -> Array:
    """Return the common area of rectangles pair by pair: the one is upright around the origin.

    It is what lies between the other's edges, cut to the one's width, and the one's sides.
    """
    x, y = (other[:, :2] - one[:, :2]).T
    cosine, sine = np.cos(one[:, 4]), np.sin(one[:, 4])
    centre = np.stack([cosine * x + sine * y, cosine * y - sine * x], axis=1)
    corners = rectangle_corners(other[:, 2], other[:, 3], other[:, 4] - one[:, 4])
    points = (centre[:, None, :] + corners).T  # coordinate, corner, pair
    half_length, half_width = one[:, 2:4].T / 2
    (x, y), (dx, dy) = points, np.roll(points, -1, axis=1) - points
    with np.errstate(all="ignore"):
        left, right = np.clip((x, x + dx), -half_length, half_length)
        start, end = y + dy / dx * (left - x), y + dy / dx * (right - x)
        areas = (right - left) * _mean_height(start, end, half_width)
    return np.asarray(np.abs(np.where(dx == 0, 0.0, areas).sum(axis=0)))


def _mean_height(start: Array, end: Array, most: Array) -> Array:
    """Return the mean of what rises evenly from start to end, cut to -most … most."""
    first, last = np.clip((start, end), -most, most)
    rise = end - start
    cuts = np.where(rise == 0, 0.0, (first - start, end - last) / rise)
    before, after = np.clip(cuts, 0, 1)  # of what is outside as a whole, one is all of it
    return np.asarray((1 - before - after) * (first + last) / 2 + before * first + after * last)


def _area(boxes: Array) -> Array:
    return np.asarray((boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1]))
