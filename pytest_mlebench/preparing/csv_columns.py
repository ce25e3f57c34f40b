"""The columns of a table in the form in which they become csv text fastest."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.preparing.csv_text import (
    Block,
    Column,
    NotProven,
    RowJoiner,
    Style,
    Texts,
)
from pytest_mlebench.preparing.number_text import Array

BLOCK_CELLS, MIN_BLOCK_ROWS = 20_000, 1_000
NAN: Any = np.nan  # what is missing is nearly always this very object


class RowWriter:
    """Writes rows at once; what earlier ones have shown of the columns saves time."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._joiner = RowJoiner(style)
        self._mixed: set[int] = set()  # numbers of the columns with more than texts

    def text(self, columns: list[Array]) -> bytes:
        """Return the text of some rows, or raise NotProven."""
        lists = [each.tolist() if each.dtype == object else each for each in columns]
        try:
            return self._joiner.text(self._filled(lists))
        except TypeError:
            self._mixed = {n for n, each in enumerate(lists) if _is_mixed(each)}
        try:
            return self._joiner.text(self._filled(lists))
        except TypeError:
            return self._joiner.text([_as_texts(each, self._style) for each in lists])

    def _filled(self, lists: list[Any]) -> list[Any]:
        """Return columns, those with more than texts with nothing where one is missing."""
        return [
            ["" if cell is NAN else cell for cell in each] if n in self._mixed else each
            for n, each in enumerate(lists)
        ]


def columns_of(table: pd.DataFrame, style: Style, *, index: bool = False) -> list[Array]:
    """Return the columns of a table: numbers, or objects that may be texts; or raise NotProven."""
    if not table.shape[1]:
        raise NotProven
    columns = [_values(table.iloc[:, number], style) for number in range(table.shape[1])]
    return [_index(table.index), *columns] if index else columns


def row_slices(columns: list[Array]) -> Iterator[slice]:
    """Yield where blocks of rows begin and end."""
    step = max(MIN_BLOCK_ROWS, BLOCK_CELLS // len(columns))
    for start in range(0, len(columns[0]), step):
        yield slice(start, start + step)


def fast_text(table: pd.DataFrame, style: Style) -> bytes:
    """Return the text of all rows, or raise NotProven."""
    columns, writer = columns_of(table, style), RowWriter(style)
    slices = row_slices(columns)
    return b"".join([writer.text([each[rows] for each in columns]) for rows in slices])


def blocks_of(table: pd.DataFrame, style: Style, *, index: bool = False) -> list[Block]:
    """Return the rows of a table in the form in which other processes take them.

    Raise NotProven if their text might not be what pandas writes.
    """
    columns = columns_of(table, style, index=index)
    return [[_column(each[rows], style) for each in columns] for rows in row_slices(columns)]


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
        return Texts.of(_texts(objects, style))


def _as_texts(cells: Array | list[Any], style: Style) -> Array | list[str]:
    """Return numbers as they are, and a list with what is no text in it as text."""
    return _texts(cells, style) if isinstance(cells, list) and _is_mixed(cells) else cells


def _is_mixed(cells: Array | list[Any]) -> bool:
    return isinstance(cells, list) and set(map(type, cells)) != {str}


def _texts(cells: list[Any], style: Style) -> list[str]:
    return _missing_too(cells) if style.is_quoted else _others_too(cells)


def _missing_too(cells: list[Any]) -> list[str]:
    """Return texts of which some are missing."""
    return [cell if type(cell) is str else _missing(cell) for cell in cells]


def _others_too(cells: list[Any]) -> list[str]:
    """Return texts among which are others, as csv.writer writes them."""
    words = {True: "True", False: "False"}  # and 1 and 0, whose type is another
    return [
        cell
        if type(cell) is str
        else ""
        if cell is NAN
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
