"""A table as csv, some rows at a time and on several cores: by the fast way, else by pandas."""

from __future__ import annotations

import csv
import io
from collections.abc import Hashable, Iterator
from functools import partial
from typing import Any

import pandas as pd

from pytest_mlebench.host.crew import Crew
from pytest_mlebench.preparing.csv_text import Column, NotProven, Style, columns_of, rows_text

# to_csv writes so many cells at a time, within which dates have one form, with hours or without.
CHUNK_CELLS = 100_000
PART_CHUNKS = 4  # a few megabytes of text
STYLES = ("sep", "quoting", "float_format")
MIN_SHARED_CELLS = 3_000_000  # from which on more processes pay

Options = dict[str, Any]  # of to_csv


def csv_parts(table: pd.DataFrame, options: Options) -> Iterator[bytes]:
    """Yield the csv text of a table, header first."""
    yield by_pandas(table.iloc[:0], options)
    step = PART_CHUNKS * max(1, CHUNK_CELLS // max(1, table.shape[1]))
    starts = range(0, len(table), step)
    parts = (table.iloc[start : start + step] for start in starts)
    with Crew(None if table.size >= MIN_SHARED_CELLS else 1) as crew:
        yield from crew.map(partial(part_text, to_part(part, options), options) for part in parts)


def part_text(part: list[Column] | pd.DataFrame, options: Options) -> bytes:
    """Return the csv text of some rows, without a header."""
    if isinstance(part, pd.DataFrame):
        return by_pandas(part, {**options, "header": False})
    try:
        return rows_text(part, _style(options)).encode()
    except NotProven:
        return part_text(_table(part), options)


def to_part(rows: pd.DataFrame, options: Options) -> list[Column] | pd.DataFrame:
    """Return rows in the form in which they are written fastest: without an index, by columns."""
    try:
        _style(options)
        return columns_of(rows)
    except NotProven:
        return rows


def table_text(table: pd.DataFrame, options: Options) -> bytes:
    """Return the csv text of a table, without a header."""
    return part_text(to_part(table, options), options)


def by_pandas(table: pd.DataFrame, options: Options) -> bytes:
    """Return a table as pandas writes it, but the same in every Python."""
    file = io.StringIO()
    hidden = _hide_returns(table) if QUOTES_RETURNS else None
    (table if hidden is None else hidden).to_csv(file, lineterminator="\n", **options)
    text = file.getvalue()
    return (text if hidden is None else text.replace(HIDDEN, "\r")).encode()


def _style(options: Options) -> Style:
    """Return what is asked of ``to_csv``, if the fast way knows all of it."""
    rest = {**options}
    style = Style(**{name: rest.pop(name) for name in STYLES if name in rest})
    if rest != {"index": False}:
        raise NotProven
    return style


def _table(columns: list[Column]) -> pd.DataFrame:
    table: dict[Hashable, Any] = {}
    for number, column in enumerate(columns):
        table[number] = pd.Series(column, dtype=object) if isinstance(column, list) else column
    return pd.DataFrame(table)


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
