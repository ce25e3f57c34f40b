"""Reading csv files the same way in every supported pandas: exact floats, strings as objects."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import pandas as pd

ROWS = 1 << 17  # the parser's own tables are many times as large as the text of narrow rows

_VERSION = tuple(int(part) for part in pd.__version__.split(".")[:2])
COPIES_ON_WRITE = _VERSION >= (3, 0)  # whoever changes a shared table changes only his own
_PARSES_EXACTLY = _VERSION >= (3, 1)  # and says that asking for it is deprecated


def read_frame(source: Path | IO[bytes], **options: Any) -> pd.DataFrame:
    """Read a csv file; dtypes are inferred over whole columns."""
    if not _PARSES_EXACTLY:
        options.setdefault("float_precision", "round_trip")
    options.setdefault("low_memory", False)
    table = _in_parts(source, options)
    if table is None:
        if not isinstance(source, Path):
            source.seek(0)
        table = pd.read_csv(source, **options)
    strings = [name for name, dtype in table.dtypes.items() if isinstance(dtype, pd.StringDtype)]
    return table.astype(dict.fromkeys(strings, object)) if strings else table


def _in_parts(source: Path | IO[bytes], options: dict[str, Any]) -> pd.DataFrame | None:
    """Read some rows at a time; None if the parts do not tell what the whole columns are."""
    with pd.read_csv(source, chunksize=ROWS, **options) as reader:
        parts = list(reader)
    if len(parts) == 1:
        return parts[0]
    if not parts or not isinstance(parts[0].index, pd.RangeIndex):
        return None
    for column in range(parts[0].shape[1]):
        kinds = {_kind(part.iloc[:, column]) for part in parts}
        if len(kinds) > 1 and not kinds <= {"int64", "float64"}:
            return None
    return pd.concat(parts, ignore_index=True)


def _kind(column: pd.Series[Any]) -> str:
    """Return a column's dtype, and for one of objects what they are: texts, booleans with gaps …"""
    if column.dtype == object:
        return str(pd.api.types.infer_dtype(column))
    return str(column.dtype)
