"""The kinds of values a target column may hold, and how a column becomes an array of one kind.

number       finite numbers; True and False count as 1 and 0 unless the rules say otherwise
unbounded    numbers, infinite ones included
probability  numbers from 0 to 1
integer      whole numbers, also written 2.0
truncated    numbers cut to whole ones, toward zero; in a column of text, whole numbers only
first        the first of several whole numbers separated by blanks
boolean      True and False, also written 1 and 0; any other whole number is a wrong answer, and
             numbers among True and False make all answers wrong
label        text compared as it stands; a missing one is the empty label, but not among numbers
name         a label that must not be missing
words        text; a column that reads as numbers is refused, what is missing as with text,
             but where it is to be "nan", at least one text must be there
text         text, or whatever else as it is printed; what is missing is for the rules to say
any          the column as it was read, for a competition's own grader
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench._units import show_score
from pytest_mlebench.errors import InvalidSubmission
from pytest_mlebench.grading.inference import WHOLE, number

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Column:
    """A column of a submission, with what is needed to judge it and to name its rows."""

    cells: pd.Series[Any]
    ids: Any  # names of rows by ``iloc``
    range: tuple[float, float] | None = None
    missing: str = "reject"
    booleans: bool = True
    true: float = 1

    def refuse(self, wrong: Array, wanted: str) -> None:
        """Raise InvalidSubmission naming the first wrong row, its value and what was expected."""
        count = int(np.count_nonzero(wrong))
        if not count:
            return
        row = int(np.flatnonzero(wrong)[0])
        cell = self.cells.iloc[row]
        given = "nothing" if pd.isna(cell) else repr(cell) if isinstance(cell, str) else str(cell)
        given = given if len(given) <= 60 else f"{given[:57]}…"
        more = f" (and {count - 1} more)" if count > 1 else ""
        raise InvalidSubmission(
            f"column {self.cells.name!r} must hold {wanted}, "
            f"given: {given} for id {self.ids.iloc[row]}{more}"
        )


def convert(column: Column, kind: str) -> Array:
    """Return the column as an array of its kind, or say which row is in the way."""
    return _CONVERTERS[kind](column)


def _number(column: Column) -> Array:
    values = _floats(column)
    column.refuse(~np.isfinite(values), "a finite number")
    if column.range is not None:
        low, high = column.range
        wanted = f"a number from {show_score(low)} to {show_score(high)}"
        column.refuse((values < low) | (values > high), wanted)
    return values


def _unbounded(column: Column) -> Array:
    values = _floats(column)
    column.refuse(np.isnan(values), "a number")
    return values


def _probability(column: Column) -> Array:
    return _number(replace(column, range=(0, 1)))


def _integer(column: Column) -> Array:
    if pd.api.types.is_integer_dtype(column.cells.dtype) and column.range is None:
        return np.asarray(column.cells)
    values = _number(column)
    column.refuse(values != np.trunc(values), "a whole number")
    return _int64(column, values)


def _truncated(column: Column) -> Array:
    if pd.api.types.is_signed_integer_dtype(column.cells.dtype):
        return _integer(column)
    if pd.api.types.is_numeric_dtype(column.cells.dtype):
        return _int64(column, np.trunc(_number(column)))
    numbers = column.cells.map(_whole)  # as Python reads them: 007 and 1_000 are fine, 7.0 is not
    column.refuse(numbers.isna().to_numpy(), "a whole number")
    column.refuse(numbers.map(int.bit_length).to_numpy() > 63, "a whole number of 64 bits")
    return np.asarray(numbers, dtype=np.int64)


def _first(column: Column) -> Array:
    wanted = "whole numbers separated by blanks"
    column.refuse(column.cells.isna().to_numpy(), wanted)
    if pd.api.types.is_float_dtype(column.cells.dtype):
        column.refuse(np.ones(len(column.cells), dtype=bool), wanted)
    if column.cells.dtype == object:
        column = replace(column, cells=column.cells.map(_first_word))
    return _truncated(column)


def _first_word(cell: Any) -> str | None:
    words = str(cell).split(None, 1)
    return words[0] if words else None


def _whole(text: Any) -> int | None:
    try:
        return int(text)
    except (ValueError, TypeError):  # a word, a missing value
        return None


def _boolean(column: Column) -> Array:
    cells = column.cells
    if cells.dtype != object:
        return _integer(column)
    words = cells.astype(str).str.lower().isin(["true", "false"])
    numbers = cells.map(_number_of, na_action="ignore").notna() & ~words
    column.refuse(~(words | numbers).to_numpy(), "True or False")
    if not numbers.any():
        return _integer(column)
    # The reference compares such a column as text, but with two different texts it gives up.
    if cells.nunique() <= 2:
        column.refuse(numbers.to_numpy(), "True or False")
    return np.full(len(cells), -1)


def _label(column: Column) -> Array:
    cells = column.cells
    if pd.api.types.is_float_dtype(cells.dtype):
        values = cells.to_numpy()
        column.refuse(~np.isnan(values) & ~(values == np.trunc(values)), "a label")
        column.refuse(np.abs(values) >= 2**63, "a label")
    gaps = cells.isna()
    if gaps.any() and not gaps.all() and not cells[~gaps].map(type).eq(str).all():
        column.refuse(gaps.to_numpy(), "a label")
    return _text(replace(column, missing="empty"))


def _name(column: Column) -> Array:
    column.refuse(column.cells.isna().to_numpy(), "a label")
    return _label(column)


def _text(column: Column) -> Array:
    absent = column.cells.isna().to_numpy()
    if column.missing == "reject":
        column.refuse(absent, "a text")
    cells = column.cells
    if pd.api.types.infer_dtype(cells, skipna=True) != "string":
        cells = cells.astype(str)
    texts = np.asarray(cells, dtype=object)
    if absent.any():
        texts = np.where(absent, "" if column.missing == "empty" else "nan", texts)
    return texts


def _words(column: Column) -> Array:
    absent = column.cells.isna()
    if pd.api.types.infer_dtype(column.cells, skipna=True) != "string" and not absent.all():
        other = column.cells.map(lambda cell: not isinstance(cell, str)) & ~absent
        column.refuse(other.to_numpy(dtype=bool), "a text")
    if column.missing == "nan" and absent.all():  # pandas reads a column of numbers, all missing
        column.refuse(absent.to_numpy(), "a text")
    return _text(column)


def _any(column: Column) -> Array:
    return np.asarray(column.cells)


_CONVERTERS: dict[str, Callable[[Column], Array]] = {  # one for each of ``rules.KINDS``
    "number": _number,
    "unbounded": _unbounded,
    "probability": _probability,
    "integer": _integer,
    "truncated": _truncated,
    "first": _first,
    "boolean": _boolean,
    "label": _label,
    "name": _name,
    "text": _text,
    "words": _words,
    "any": _any,
}


def _floats(column: Column) -> Array:
    """Return a column as floats; missing values stay NaN."""
    cells = column.cells
    if cells.dtype == bool and not column.booleans:
        column.refuse(np.ones(len(cells), dtype=bool), "a number")
    if cells.dtype == bool:
        return np.where(cells, float(column.true), 0.0)
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return np.asarray(cells, dtype=np.float64)
    numbers = cells.map(_number_of, na_action="ignore")
    wrong = (numbers.isna() & cells.notna()).to_numpy()
    column.refuse(wrong & cells.map(_is_whole).to_numpy(), "a number of 64 bits")
    column.refuse(wrong, "a number")
    return np.asarray(numbers, dtype=np.float64)


def _number_of(cell: Any) -> float | None:
    """Return the number that a cell of a mixed column is; True and False are none among others."""
    return number(cell) if isinstance(cell, str) else None


def _is_whole(cell: Any) -> bool:
    return isinstance(cell, str) and WHOLE.fullmatch(cell) is not None


def _int64(column: Column, values: Array) -> Array:
    column.refuse(np.abs(values) >= 2**63, "a whole number of 64 bits")
    return values.astype(np.int64)
