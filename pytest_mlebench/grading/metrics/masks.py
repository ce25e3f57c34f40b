"""Run-length encoded masks: decoding without a loop over runs, and their overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_mlebench.errors import InvalidSubmission

Array = np.ndarray[Any, np.dtype[Any]]


def parse_runs(text: str) -> tuple[Array, Array]:
    """Return starts (from 0) and lengths of ``start length start length …`` (starts from 1)."""
    try:
        numbers = np.array([int(token) for token in text.split()], dtype=np.int64)
    except (ValueError, OverflowError):
        raise InvalidSubmission(
            f"a mask must be pairs of whole numbers, given: {_short(text)}"
        ) from None
    starts, lengths = _paired(numbers[0::2] - 1, numbers[1::2], text)
    if (numbers <= 0).any():
        raise InvalidSubmission(
            f"starts and lengths of a mask must be positive, given: {_short(text)}"
        )
    if (starts[1:] < starts[:-1] + lengths[:-1]).any():
        raise InvalidSubmission(
            f"the runs of a mask must be in order and must not overlap, given: {_short(text)}"
        )
    return starts, lengths


def decode_rle(text: str, pixels: int) -> Array:
    """Return a flat boolean mask of *pixels*; what lies past its end is cut off."""
    starts, lengths = parse_runs(text)
    steps = np.zeros(pixels + 1, dtype=np.int8)
    steps[np.minimum(starts, pixels)] += 1
    # runs may touch: the end of one is then the start of the next
    np.subtract.at(steps, np.minimum(starts + lengths, pixels), 1)
    return np.cumsum(steps[:-1], dtype=np.int8).astype(bool)


def _paired(starts: Array, lengths: Array, text: str) -> tuple[Array, Array]:
    """Give every start a length, in the reference's way with a length too few.

    It leaves them to numpy's broadcasting: a lone start is an empty mask, two starts share one
    length, and everything longer does not fit.
    """
    if len(starts) > len(lengths) >= 2:
        raise InvalidSubmission(f"a mask has a start without a length: {_short(text)}")
    if len(starts) > len(lengths):
        starts, lengths = np.broadcast_arrays(starts[: 2 * len(lengths)], lengths)
    return starts, lengths


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}…")
