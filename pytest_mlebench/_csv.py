"""Reading csv files the same way in every supported pandas: exact floats, strings as objects."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import IO, Any

import pandas as pd

# the parser's own tables are many times as large as the text that they are made of
ROWS = 1 << 17
CELLS = 1 << 20
TEXT_ROWS = 1 << 14  # of which the table of different texts fits into the caches of a processor
FIRST_ROWS = 1 << 10  # so many are read before it is known how wide they are

_VERSION = tuple(int(part) for part in pd.__version__.split(".")[:2])
COPIES_ON_WRITE = _VERSION >= (3, 0)  # whoever changes a shared table changes only his own
_PARSES_EXACTLY = _VERSION >= (3, 1)  # and says that asking for it is deprecated


class TooManyRows(ValueError):
    """A file has more rows than are to be read."""


def read_frame(
    source: Path | IO[bytes], *, max_rows: int | None = None, width: int = 1, **options: Any
) -> pd.DataFrame:
    """Read a csv file; dtypes are inferred over whole columns.

    *max_rows* is a bound for its rows; *width* tells of how many fields they are, if only some of
    its columns are to be read.
    """
    options = _exact(options)
    table = _joined(list(_parts(source, options, max_rows, width)), options)
    if table is None:
        if not isinstance(source, Path):
            source.seek(0)
        table = pd.read_csv(source, **options)
    return _with_objects(table)


def read_text(text: bytes, **options: Any) -> pd.DataFrame:
    """Read csv text that is short enough to be parsed at once."""
    return _with_objects(pd.read_csv(io.BytesIO(text), **_exact(options)))


def _exact(options: dict[str, Any]) -> dict[str, Any]:
    precise = {} if _PARSES_EXACTLY else {"float_precision": "round_trip"}
    return {**precise, "low_memory": False, **options}


def _with_objects(table: pd.DataFrame) -> pd.DataFrame:
    strings = [name for name, dtype in table.dtypes.items() if isinstance(dtype, pd.StringDtype)]
    return table.astype(dict.fromkeys(strings, object)) if strings else table


def _parts(
    source: Path | IO[bytes], options: dict[str, Any], max_rows: int | None, width: int
) -> Iterator[pd.DataFrame]:
    """Read some rows at a time, fewer of wide ones."""
    rows, found = min(ROWS, FIRST_ROWS), 0
    with pd.read_csv(source, iterator=True, **options) as reader:
        while True:
            try:
                part = reader.get_chunk(rows)
            except StopIteration:
                return
            yield part
            found += len(part)
            if max_rows is not None and found > max_rows:
                raise TooManyRows(max_rows)
            most = min(ROWS, TEXT_ROWS) if _has_texts(part) else ROWS
            rows = max(1, min(most, CELLS // max(width, part.shape[1])))


def _has_texts(part: pd.DataFrame) -> bool:
    return not all(map(pd.api.types.is_numeric_dtype, part.dtypes))


def _joined(parts: list[pd.DataFrame], options: dict[str, Any]) -> pd.DataFrame | None:
    """Return the whole table; None if the parts do not tell what its columns are."""
    if len(parts) == 1:
        return parts[0]
    if not parts or not parts[0].index.equals(pd.RangeIndex(len(parts[0]))):
        return None
    given = options.get("dtype") or {}
    for place, name in enumerate(parts[0].columns):
        if isinstance(given, dict) and name in given:
            continue
        kinds = {kind(part.iloc[:, place]) for part in parts}
        if len(kinds) == 1 or kinds <= {"int64", "float64"}:
            continue
        if kinds != {"string", "float64"} or not all(map(_is_text, parts, repeat(place))):
            return None
    return pd.concat(parts, ignore_index=True)


def _is_text(part: pd.DataFrame, place: int) -> bool:
    """Tell whether there is nothing but text in a column, or nothing at all."""
    column = part.iloc[:, place]
    return column.dtype == object or bool(column.isna().all())


def kind(column: pd.Series[Any]) -> str:
    """Return a column's dtype, and for one of objects what they are: texts, booleans with gaps …"""
    if column.dtype == object:
        return str(pd.api.types.infer_dtype(column))
    return str(column.dtype)
