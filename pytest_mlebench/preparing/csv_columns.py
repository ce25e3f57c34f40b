"""The columns of a table in the form in which they become csv text fastest."""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.preparing.csv_text import Block, Column, NotProven, Style, Texts
from pytest_mlebench.preparing.number_text import Array

BLOCK_CELLS, MIN_BLOCK_ROWS = 20_000, 1_000


def blocks_of(table: pd.DataFrame, style: Style, *, index: bool = False) -> list[Block]:
    """Return the rows of a table in the form that ``rows_text`` takes, or raise NotProven."""
    if not table.shape[1]:
        raise NotProven
    columns = [_values(table.iloc[:, number], style) for number in range(table.shape[1])]
    if index:
        columns.insert(0, _index(table.index))
    step = max(MIN_BLOCK_ROWS, BLOCK_CELLS // len(columns))
    starts = range(0, len(table), step)
    return [[_column(each[start : start + step], style) for each in columns] for start in starts]


def _index(index: pd.Index[Any]) -> Array:
    if type(index) not in (pd.Index, pd.RangeIndex) or index.dtype != np.int64:
        raise NotProven
    return np.asarray(index)


def _values(cells: pd.Series[Any], style: Style) -> Array:
    """Return numbers, or objects that may be texts."""
    if isinstance(cells.dtype, pd.StringDtype) or cells.dtype == object:
        return np.asarray(cells, dtype=object)
    values = np.asarray(cells) if isinstance(cells.dtype, np.dtype) else None
    if values is None or (values.dtype.kind not in "iub" and values.dtype != np.float64):
        raise NotProven
    if style.is_quoted and _may_be_quoted(values, style):
        raise NotProven
    return values


def _may_be_quoted(values: Array, style: Style) -> bool:
    """Tell whether pandas puts quotes around some that are no texts: missing or formatted ones."""
    if values.dtype.kind == "f":
        return style.float_format is not None or bool(np.isnan(values).any())
    return values.dtype.kind == "b"


def _column(cells: Array, style: Style) -> Column:
    """Return some cells: texts, and what may be among them, as text; what is missing is empty."""
    if cells.dtype != object:
        return cells
    objects = cells.tolist()
    try:
        return Texts.of(objects)
    except TypeError:
        return Texts.of(_missing_too(objects) if style.is_quoted else _others_too(objects))


def _missing_too(cells: list[Any]) -> list[str]:
    """Return texts of which some are missing."""
    return [cell if type(cell) is str else _missing(cell) for cell in cells]


def _others_too(cells: list[Any]) -> list[str]:
    """Return texts among which are others, as csv.writer writes them."""
    words = {True: "True", False: "False"}  # and 1 and 0, whose type is another
    return [
        cell
        if type(cell) is str
        else words[cell]
        if type(cell) is bool
        else str(cell)
        if type(cell) is int or (type(cell) is float and cell == cell)  # noqa: PLR0124 - not NaN
        else _missing(cell)
        for cell in cells
    ]


def _missing(cell: Any) -> str:
    if cell is None or cell is pd.NA or cell is pd.NaT or (type(cell) is float and isnan(cell)):
        return ""
    raise NotProven
