"""Run-length encoded masks, as runs: no loop over runs, no array of all pixels.

A mask is a text ``start length start length …`` whose pixels are numbered from 1. Areas and
overlaps need only the runs, so pictures of a billion pixels are no burden.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.errors import GraderError, InvalidSubmission

Array = np.ndarray[Any, np.dtype[Any]]

FAR = 2**61  # past the end of every picture, and the sum of two still fits into 64 bits


@dataclass(frozen=True)
class Runs:
    """The pixels of a mask: half-open runs, numbered from 0, sorted, at most touching."""

    starts: Array
    ends: Array

    @property
    def size(self) -> int:
        """Return the number of pixels."""
        return int((self.ends - self.starts).sum())

    def within(self, pixels: int) -> Runs:
        """Return the mask without what lies past the end of a picture."""
        return Runs(np.minimum(self.starts, pixels), np.minimum(self.ends, pixels))

    def common(self, other: Runs) -> int:
        """Return the number of pixels that are in both masks."""
        return int((other._before(self.ends) - other._before(self.starts)).sum())

    def pixels(self) -> Array:
        """Return the number of every pixel, ascending."""
        lengths = self.ends - self.starts
        offsets = self.starts - np.cumsum(lengths) + lengths
        return np.asarray(np.arange(lengths.sum()) + np.repeat(offsets, lengths))

    def _before(self, positions: Array) -> Array:
        """Return for each position how many pixels of the mask lie before it."""
        lengths = self.ends - self.starts
        total = np.concatenate([[0], np.cumsum(lengths)])
        begun = np.searchsorted(self.starts, positions)
        last_end = np.concatenate([[0], self.ends])[begun]
        return np.asarray(total[begun] - np.maximum(last_end - positions, 0))


def read_masks(ids: Iterable[Any], texts: Iterable[str], empty: str = "") -> list[Runs]:
    """Return the masks of a submission, or name the row whose mask cannot be decoded.

    *empty* is a word for a mask without pixels; a blank text is one as well.
    """
    masks = []
    for name, text in zip(ids, texts, strict=True):
        try:
            masks.append(parse_runs("" if text == empty else text))
        except InvalidSubmission as problem:
            raise InvalidSubmission(f"{problem} for id {name}") from None
    return masks


def true_masks(ids: Iterable[Any], cells: pd.Series[Any], empty: str = "") -> list[Runs]:
    """Return the masks of the answers, where an empty cell is an empty mask."""
    try:
        return read_masks(ids, cells.astype(str).where(cells.notna(), ""), empty)
    except InvalidSubmission as problem:
        raise GraderError(f"the answers are damaged: {problem}") from problem


def parse_runs(text: str) -> Runs:
    """Return the runs of ``start length start length …``."""
    numbers = _whole_numbers(text)
    if (numbers <= 0).any():
        raise InvalidSubmission(
            f"starts and lengths of a mask must be positive, given: {_short(text)}"
        )
    starts, lengths = _paired(numbers[0::2] - 1, numbers[1::2], text)
    if (starts[1:] < starts[:-1] + lengths[:-1]).any():
        raise InvalidSubmission(
            f"the runs of a mask must be in order and must not overlap, given: {_short(text)}"
        )
    return Runs(starts, starts + lengths)


def dice(truth: Runs, mask: Runs, both_empty: float) -> float:
    """Return twice the common pixels over the sum of the sizes."""
    total = truth.size + mask.size
    return 2 * truth.common(mask) / total if total else both_empty


def _whole_numbers(text: str) -> Array:
    tokens = text.split()
    try:
        try:
            numbers = np.fromiter(map(int, tokens), np.int64, len(tokens))
        except OverflowError:  # a length beyond 64 bits reaches the end of the picture, no more
            numbers = np.array([max(-FAR, min(int(token), FAR)) for token in tokens])
    except ValueError:
        raise InvalidSubmission(
            f"a mask must be pairs of whole numbers, given: {_short(text)}"
        ) from None
    return np.clip(numbers, -FAR, FAR)


def _paired(starts: Array, lengths: Array, text: str) -> tuple[Array, Array]:
    """Give every start a length, in the reference's way with a length too few.

    It leaves them to numpy's broadcasting: a lone start is an empty mask, two starts share one
    length, and everything longer does not fit.
    """
    if len(starts) > len(lengths) >= 2:
        raise InvalidSubmission(f"a mask must have a length for every start, given: {_short(text)}")
    if len(starts) > len(lengths):
        starts, lengths = np.broadcast_arrays(starts[: 2 * len(lengths)], lengths)
    return starts, lengths


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}…")
