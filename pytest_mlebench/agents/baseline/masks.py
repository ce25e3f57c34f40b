"""Masks written as runs: pairs of a first pixel and a length, pixels counted along one axis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
import pandas as pd

Order = Literal["C", "F"]  # along the rows, or along the columns


def are_runs(cells: pd.Series) -> bool:
    """Tell whether every cell is a mask: pairs of numbers, one run after the other."""
    runs = [_runs(cell) for cell in cells]
    return bool(runs) and all(one is not None for one in runs)


def decode_runs(cell: str, height: int, width: int, *, order: Order, first: int) -> np.ndarray:
    """Return a mask; *first* is the number of the first pixel."""
    flat = np.zeros(height * width, dtype=bool)
    runs = _runs(cell)
    for start, length in [] if runs is None else runs:
        flat[start - first : start - first + length] = True
    return flat.reshape((height, width), order=order)


def encode_runs(mask: np.ndarray, *, order: Order, first: int) -> str:
    """Return a mask as runs."""
    flat = np.concatenate([[0], mask.ravel(order=order).astype(np.int8), [0]])
    starts = np.flatnonzero(np.diff(flat) == 1)
    ends = np.flatnonzero(np.diff(flat) == -1)
    pairs = zip(starts + first, ends - starts, strict=True)
    return " ".join(f"{start} {length}" for start, length in pairs)


def first_pixel(cells: Iterable[object]) -> int:
    """Return whether pixels are counted from 0 or from 1."""
    starts = (int(runs[0, 0]) for runs in map(_runs, cells) if runs is not None)
    return min([1, *starts])


def _runs(cell: object) -> np.ndarray | None:
    """Return the runs of a cell (runs, 2), or None where it is something else."""
    words = str(cell).split()
    if not words or len(words) % 2 or not all(map(str.isdecimal, words)):
        return None
    runs = np.array(words, dtype=np.int64).reshape(-1, 2)
    ends = runs.sum(axis=1)
    return runs if (runs[:, 1] > 0).all() and (runs[1:, 0] >= ends[:-1]).all() else None
