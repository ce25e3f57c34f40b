"""What a column of written cells holds: numbers, booleans or texts, the same in every pandas.

The rules are those of the csv parser of pandas 2.2, by which the reference implementation reads,
but for two that depend on the order of the rows there: a whole number beyond 64 bits, and a number
beyond the range of floats, make a column one of texts, each as it is written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

WHOLE = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
_DECIMAL = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)
_INFINITE = re.compile(r"\s*[+-]?inf(inity)?\s*", re.ASCII | re.IGNORECASE)
_BOOLEANS = {"true": True, "false": False}
_DIGITS = 40  # more make a whole number of more than 64 bits, unless they are zeros
_EXACT = 2.0**63  # from here on a float may have been written as a whole number beyond 64 bits


def is_settled(cells: pd.Series[Any]) -> bool:
    """Tell whether every pandas would parse a column to what this one has parsed it to."""
    if cells.dtype == np.float64:
        values = cells.to_numpy()
        return bool(np.fmax.reduce(values) < _EXACT and np.fmin.reduce(values) > -_EXACT)
    return bool(cells.dtype in (np.int64, np.bool_))


def is_clearly_text(cell: Any) -> bool:
    """Tell whether a written cell makes its column one of texts, whatever the others are."""
    return isinstance(cell, str) and number(cell) is None and cell.lower() not in _BOOLEANS


def inferred(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column of texts and gaps as numbers or booleans if that is what all texts are."""
    gaps = cells.isna()
    texts = cells[~gaps].tolist()
    if texts and is_clearly_text(texts[0]):
        return cells
    values = _values(texts)
    if values is None:
        return cells
    if not gaps.any():
        return pd.Series(values, index=cells.index, name=cells.name)
    dtype = object if values.dtype == bool else np.float64
    filled = pd.Series(np.nan, index=cells.index, name=cells.name, dtype=dtype)
    filled[~gaps] = values
    return filled


def number(cell: str) -> float | int | None:
    """Return the number that a cell is, None for what is no number or too large for one."""
    if WHOLE.fullmatch(cell):
        return whole_number(cell)
    if _INFINITE.fullmatch(cell):
        return float(cell)
    if not _DECIMAL.fullmatch(cell):
        return None
    value = float(cell)
    return value if math.isfinite(value) else None


def whole_number(cell: str) -> int | None:
    """Return a whole number of at most 64 bits, with or without a sign."""
    if len(cell) > _DIGITS:  # Python refuses to read thousands of digits
        cell = re.sub(r"(?<!\d)0+(?=\d)", "", cell.strip())
        if len(cell) > _DIGITS:
            return None
    value = int(cell)
    return value if -(2**63) <= value < 2**64 else None


def _values(texts: Sequence[str]) -> Any:
    """Return an array of what all texts are, None if they are nothing but texts."""
    if texts and texts[0].lower() in _BOOLEANS:
        booleans = [_BOOLEANS.get(text.lower()) for text in texts]
        return None if None in booleans else np.array(booleans, dtype=bool)
    numbers = [number(text) for text in texts]
    if None in numbers:
        return None
    if all(isinstance(value, int) for value in numbers):
        for dtype in (np.int64, np.uint64):
            with np.errstate(all="ignore"):
                try:
                    return np.array(numbers, dtype=dtype)
                except OverflowError:
                    continue
        return None  # some need the sign, others the bit
    return np.array(numbers, dtype=np.float64)
