"""A table as csv, some rows at a time and on several cores: by the fast way, else by pandas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.host.crew import Crew
from pytest_mlebench.preparing.csv_columns import RowWriter, blocks_of, columns_of, row_slices
from pytest_mlebench.preparing.csv_text import NotProven, Style, rows_text

# to_csv writes so many cells at a time, within which dates have one form, with hours or without.
CHUNK_CELLS = 100_000
PART_CHUNKS = 4  # a few megabytes of text
STYLES = ("sep", "quoting", "float_format")
# From which on more processes pay, in doubles to be written. Whole numbers and texts are written
# sooner than they are handed over; what pandas writes takes ten times as long.
MIN_SHARED_CELLS = 20_000_000
DOUBLES_BY_PANDAS = 10

Options = dict[str, Any]  # of to_csv


def csv_parts(table: pd.DataFrame, options: Options) -> Iterator[bytes]:
    """Yield the csv text of a table, header first."""
    yield by_pandas(table.iloc[:0], options)
    step = PART_CHUNKS * max(1, CHUNK_CELLS // max(1, table.shape[1]))
    parts = (table.iloc[start : start + step] for start in range(0, len(table), step))
    if _work(table, options) < MIN_SHARED_CELLS:
        yield from _texts(parts, options)
        return
    with Crew() as crew:
        yield from crew.map(_call(part, options) for part in parts)


def table_text(table: pd.DataFrame, options: Options) -> bytes:
    """Return the csv text of a table, without a header."""
    return b"".join(_texts([table], options))


def by_pandas(table: pd.DataFrame, options: Options) -> bytes:
    """Return a table as pandas writes it, but the same in every Python."""
    file = io.StringIO()
    hidden = _hide_returns(table) if QUOTES_RETURNS else None
    (table if hidden is None else hidden).to_csv(file, lineterminator="\n", **options)
    text = file.getvalue()
    return (text if hidden is None else text.replace(HIDDEN, "\r")).encode()


def _work(table: pd.DataFrame, options: Options) -> int:
    """Return how much of the work can be shared, in doubles to be written."""
    if _call(table.iloc[:1], options).func is not rows_text:
        return int(table.size) * DOUBLES_BY_PANDAS
    return len(table) * int((table.dtypes == np.float64).sum())


def _texts(parts: Iterable[pd.DataFrame], options: Options) -> Iterator[bytes]:
    """Yield the text of a few rows at a time: by the fast way, else by pandas."""
    bare = {**options, "header": False}
    try:
        style = _style(options)
    except NotProven:
        yield from (by_pandas(part, bare) for part in parts)
        return
    writer = RowWriter(style)
    for part in parts:
        try:
            columns = columns_of(part, style, index=options["index"])
        except NotProven:
            yield by_pandas(part, bare)
            continue
        for rows in row_slices(columns):
            try:
                yield writer.text([each[rows] for each in columns])
            except NotProven:
                yield by_pandas(part.iloc[rows], bare)


def _call(table: pd.DataFrame, options: Options) -> partial[bytes]:
    """Return the call that gives the text of some rows: the fast one, or that of pandas."""
    try:
        style = _style(options)
        return partial(rows_text, blocks_of(table, style, index=options["index"]), style)
    except NotProven:
        return partial(by_pandas, table, {**options, "header": False})


def _style(options: Options) -> Style:
    """Return what is asked of ``to_csv``, if the fast way knows all of it."""
    rest = {**options}
    style = Style(**{name: rest.pop(name) for name in STYLES if name in rest})
    if rest not in ({"index": False}, {"index": True}):
        raise NotProven
    return style


def _writes(cell: str) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="").writerow([cell])
    return file.getvalue()


# Python 3.13 quotes a cell for a lone carriage return, which the files we must equal do not.
QUOTES_RETURNS = _writes("a\rb") != "a\rb"
HIDDEN = "\udc0d"  # half a character: no text that was read from a file has it


def _hide_returns(table: pd.DataFrame) -> pd.DataFrame | None:
    """Return the table with another character for carriage returns, or None if it has none."""
    hidden = {}
    for name, cells in table.items():
        if pd.api.types.is_numeric_dtype(cells.dtype):
            continue
        values = cells.to_numpy(dtype=object)
        if any("\r" in value for value in values if isinstance(value, str)):
            shown = [v.replace("\r", HIDDEN) if isinstance(v, str) else v for v in values]
            hidden[name] = pd.Series(shown, index=table.index, dtype=object)
    return table.assign(**hidden) if hidden else None
