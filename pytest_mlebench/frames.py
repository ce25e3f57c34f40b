"""Reading csv files the same way in every supported pandas: exact floats, strings as objects."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import pandas as pd

_VERSION = tuple(int(part) for part in pd.__version__.split(".")[:2])
_PARSES_EXACTLY = _VERSION >= (3, 1)  # and says that asking for it is deprecated


def read_frame(source: Path | IO[bytes], **options: Any) -> pd.DataFrame:
    """Read a csv file; dtypes are inferred over whole columns."""
    if not _PARSES_EXACTLY:
        options.setdefault("float_precision", "round_trip")
    options.setdefault("low_memory", False)
    table: pd.DataFrame = pd.read_csv(source, **options)
    strings = [name for name, dtype in table.dtypes.items() if isinstance(dtype, pd.StringDtype)]
    return table.astype(dict.fromkeys(strings, object)) if strings else table
