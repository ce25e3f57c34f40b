"""The columns of a table in the form in which they become csv text fastest."""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.preparing.csv_text import (
    Block,
    Column,
    NotProven,
    Style,
    Texts,
    plain_text,
)
from pytest_mlebench.preparing.number_text import Array

BLOCK_CELLS, MIN_BLOCK_ROWS = 20_000, 1_000
NAN: Any = np.nan  # what is missing is nearly always this very object


def blocks_of(
    table: pd.DataFrame, style: Style, *, index: bool = False, shared: bool = False
) -> list[Block]:
    """Return the rows of a table in the form that ``rows_text`` takes, or raise NotProven.

    Texts are written at once, unless the work is to be *shared* with other processes.
    """
    if not table.shape[1]:
        raise NotProven
    columns = [_values(table.iloc[:, number], style) for number in range(table.shape[1])]
    if index:
        columns.insert(0, _index(table.index))
    step = max(MIN_BLOCK_ROWS, BLOCK_CELLS // len(columns))
    starts = range(0, len(table), step)
    at_once = not shared and any(each.dtype == object for each in columns)
    blocks: list[Block] = []
    for start in starts:
        part = [each[start : start + step] for each in columns]
        text = _at_once(part, style) if at_once else None
        at_once = text is not None  # where one text needs quotes, others will
        blocks.append([_column(each, style) for each in part] if text is None else text)
    return blocks


def _at_once(columns: list[Array], style: Style) -> bytes | None:
    """Return the text of some rows, or none if a text needs quotes of its own."""
    lists = [each.tolist() if each.dtype == object else each for each in columns]
    try:
        return plain_text(lists, style)
    except TypeError:
        return plain_text([_as_texts(each, style) for each in lists], style)


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
    if not isinstance(cells, list) or set(map(type, cells)) == {str}:
        return cells
    return _texts(cells, style)


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
