"""Run-length encoded masks, as runs: no loop over rows or runs, no array of all pixels.

A mask is a text ``start length start length …`` whose pixels are numbered from 1. Areas and
overlaps need only the runs, so pictures of a billion pixels are no burden.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pytest_mlebench.errors import GraderError, InvalidSubmission
from pytest_mlebench.grading.tokens import Lists, as_texts, row_portions, whole_numbers

Array = np.ndarray[Any, np.dtype[Any]]

FAR = 2**61  # past the end of every picture, and the sum of two still fits into 64 bits


@dataclass(frozen=True)
class Masks:
    """The masks of some rows: half-open runs of pixels from 0, sorted in each row."""

    runs: Array  # start and end of each
    counts: Array  # of runs in each row

    @cached_property
    def ends(self) -> Array:
        """Return for each row the number of runs up to its end."""
        return np.cumsum(self.counts)

    @property
    def rows(self) -> Array:
        """Return for each run the number of its row."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @property
    def sizes(self) -> Array:
        """Return the number of pixels of each mask."""
        return self._sums(self.runs[:, 1] - self.runs[:, 0])

    def of_rows(self, begin: int, end: int) -> Masks:
        """Return the masks of some rows, one or more."""
        first = self.ends[begin] - self.counts[begin]
        return Masks(self.runs[first : self.ends[end - 1]], self.counts[begin:end])

    def where(self, chosen: Array) -> Masks:
        """Return the masks of the chosen rows."""
        return Masks(self.runs[np.repeat(chosen, self.counts)], self.counts[chosen])

    def within(self, pixels: Any) -> Masks:
        """Return the masks without what lies past the end of a picture of so many pixels."""
        ends = np.broadcast_to(np.asarray(pixels, dtype=np.int64), self.counts.shape)
        last = ends if len(ends) == 1 else np.repeat(ends, self.counts)[:, None]
        return Masks(np.minimum(self.runs, last), self.counts)

    def common(self, others: Masks) -> Array:
        """Return the number of pixels that are in both masks of each row."""
        # a picture after the other: what is before a run in all of them is before it in its own
        span = 1 + max(int(side.runs.max(initial=0)) for side in (self, others))
        mine, theirs = (side._apart(span) for side in (self, others))
        return self._sums(_before(theirs, mine[:, 1]) - _before(theirs, mine[:, 0]))

    def _apart(self, span: int) -> Array:
        """Return the runs with each row *span* pixels after the one before."""
        if len(self.counts) == 1:  # a long one is alone: spare the copy
            return self.runs
        offsets = self.rows
        offsets *= span
        return np.asarray(self.runs + offsets[:, None])

    def pixels(self) -> Lists:
        """Return the number of every pixel of each mask, ascending."""
        lengths = self.runs[:, 1] - self.runs[:, 0]
        offsets = self.runs[:, 0] - np.cumsum(lengths) + lengths
        values = np.arange(lengths.sum()) + np.repeat(offsets, lengths)
        return Lists(values, self.sizes)

    def _sums(self, values: Array) -> Array:
        """Return the sum over the runs of each mask."""
        totals = np.append(0, np.cumsum(values))
        return np.asarray(totals[self.ends] - totals[self.ends - self.counts])


@dataclass(frozen=True)
class Overlaps:
    """For each row how many pixels the true mask has, the given one, and both of them."""

    true: Array
    given: Array
    common: Array

    def dice(self, both_empty: float) -> Array:
        """Return for each row twice the common pixels over the sum of the sizes."""
        totals = self.true + self.given
        return np.where(totals > 0, 2 * self.common / np.maximum(totals, 1), both_empty)


def overlaps(ids: Any, truth: Any, cells: Any, pixels: Any, empty: str = "") -> Overlaps:
    """Return the overlaps of true masks with given ones, or name a row that cannot be decoded."""
    ends = np.broadcast_to(np.asarray(pixels, dtype=np.int64), (len(cells),))
    true, given = as_texts(truth), as_texts(cells)
    found = np.empty((3, len(cells)), dtype=np.int64)
    for rows in row_portions(true, given):  # those of all rows would take much memory
        part = overlap(
            true_masks(ids[rows], true[rows], empty).within(ends[rows]),
            read_masks(ids[rows], given[rows], empty).within(ends[rows]),
        )
        found[:, rows] = part.true, part.given, part.common
    return Overlaps(*found)


def overlap(true: Masks, given: Masks) -> Overlaps:
    """Return the overlaps of masks row by row."""
    return Overlaps(true.sizes, given.sizes, true.common(given))


def true_masks(ids: Any, cells: Any, empty: str = "") -> Masks:
    """Return the masks of the answers; it is not the agent's fault if they cannot be decoded."""
    try:
        return read_masks(ids, as_texts(cells), empty)
    except InvalidSubmission as problem:
        raise GraderError(f"the answers are damaged: {problem}") from problem


def check_masks(ids: Any, cells: Any, empty: str = "") -> None:
    """Refuse masks that cannot be decoded."""
    texts = as_texts(cells)
    for rows in row_portions(texts):
        read_masks(ids[rows], texts[rows], empty)


def read_masks(ids: Any, texts: Sequence[str], empty: str = "") -> Masks:
    """Return masks, or name the row whose mask cannot be decoded.

    *empty* is a word for a mask without pixels; a blank text is one as well.
    """
    masks = [text if text != empty else "" for text in texts] if empty else texts

    def refuse(row: int, problem: str = "a mask must be pairs of whole numbers") -> Exception:
        shown = masks[row] if len(masks[row]) <= 40 else f"{masks[row][:37]}…"
        return InvalidSubmission(f"{problem}, given: {shown!r} for id {list(ids)[row]}")

    numbers = whole_numbers(masks, FAR, refuse)
    low = np.flatnonzero(numbers.values <= 0)
    if len(low):
        raise refuse(_row(numbers, low[0]), "starts and lengths of a mask must be positive")
    if (odd := numbers.counts % 2 == 1).any():
        long = np.flatnonzero(odd & (numbers.counts > 3))
        if len(long):
            raise refuse(int(long[0]), "a mask must have a length for every start")
        numbers = _completed(numbers)
    found = Masks(_as_runs(numbers.values), numbers.counts // 2)
    close = np.append(found.runs[1:, 0] < found.runs[:-1, 1], [False, False])
    close[found.ends - 1] = False  # the next run is of another row
    if close.any():
        row = int(np.searchsorted(found.ends, np.argmax(close), side="right"))
        raise refuse(row, "the runs of a mask must be in order and must not overlap")
    return found


def _row(numbers: Lists, place: int) -> int:
    return int(np.searchsorted(np.cumsum(numbers.counts), place, side="right"))


def _completed(numbers: Lists) -> Lists:
    """Give every start a length, in the reference's way with a length too few.

    It leaves them to numpy's broadcasting: a lone start is an empty mask, two starts share one
    length.
    """
    ends = np.cumsum(numbers.counts)
    lone, two = numbers.counts == 1, numbers.counts == 3
    kept = np.ones(len(numbers.values), dtype=bool)
    kept[ends[lone] - 1] = False
    places = np.append(0, np.cumsum(kept))[ends[two]]
    values = np.insert(numbers.values[kept], places, numbers.values[ends[two] - 2])
    return Lists(values, numbers.counts - lone + two)


def _as_runs(numbers: Array) -> Array:
    """Turn pairs of a start from 1 and a length into runs, in place."""
    runs = numbers.reshape(-1, 2)
    runs[:, 0] -= 1
    runs[:, 1] += runs[:, 0]
    return runs


def _before(runs: Array, positions: Array) -> Array:
    """Return for each position how many pixels of sorted runs are before it."""
    totals = runs[:, 1] - runs[:, 0]
    np.cumsum(totals, out=totals)
    begun = np.searchsorted(runs[:, 0], positions)
    last = np.maximum(begun - 1, 0)
    within = totals[last] - np.maximum(runs[last, 1] - positions, 0) if len(runs) else 0
    return np.where(begun > 0, within, 0)
