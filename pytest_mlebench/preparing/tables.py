"""Reading and writing tables and JSON, the same in every supported version of pandas."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench._csv import read_frame
from pytest_mlebench.errors import ConfigError, PreparationError
from pytest_mlebench.preparing import json_text
from pytest_mlebench.preparing.csv_parts import csv_parts
from pytest_mlebench.preparing.files import require
from pytest_mlebench.preparing.written_sums import new_file


def read_csv(path: Path, *, needs: Iterable[str] = (), **options: Any) -> pd.DataFrame:
    """Read a raw csv file with exact floats; the columns in *needs* must be there, with rows."""
    require(path)
    with reading(path):
        table = read_frame(path, **options)
    check_columns(path, table.columns, len(table), needs)
    return table


def check_columns(path: Path, columns: Container[str], rows: int, needs: Iterable[str]) -> None:
    """Raise PreparationError if a table lacks a column that is needed, or has no rows."""
    needed = list(needs)
    for column in needed:
        if column not in columns:
            raise PreparationError(f"{path} has no column {column!r}")
    if needed and not rows:
        raise PreparationError(f"{path} has no rows")


def write_csv(table: pd.DataFrame, path: Path, **options: Any) -> None:
    """Write a prepared csv file: no index unless asked for, line feeds, UTF-8."""
    with new_file(path) as file:
        for text in csv_parts(table, {"index": False, **options}):
            file.write(text)


def read_parquet(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Read the columns of a raw parquet file."""
    require(path)
    fastparquet = load_fastparquet()
    with reading(path):
        file = fastparquet.ParquetFile(str(path))
    for column in columns:
        if column not in file.columns:
            raise PreparationError(f"{path} has no column {column!r}")
    with reading(path):
        table: pd.DataFrame = file.to_pandas(columns=list(columns), index=False)
    return table


def write_parquet(table: pd.DataFrame, path: Path) -> None:
    """Write a prepared parquet file: no index."""
    path.parent.mkdir(parents=True, exist_ok=True)
    load_fastparquet().write(str(path), table, compression="SNAPPY", write_index=False)


def load_fastparquet() -> Any:
    """Import the library that reads and writes parquet, or say how to get it."""
    try:
        import fastparquet  # late on purpose: one competition needs it
    except ImportError:
        raise ConfigError(
            "parquet files need fastparquet: pip install 'pytest-mlebench[competitions]'"
        ) from None
    return fastparquet


def read_json(path: Path, encoding: str = "utf-8") -> Any:
    """Read a raw JSON file."""
    require(path)
    with reading(path):
        content = path.read_bytes()
        return json_text.loads(
            content if encoding == "utf-8" else content.decode(encoding).encode()
        )


def read_records(path: Path, *, needs: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Read a raw JSON file that is a list of objects; each must have the keys in *needs*."""
    records = read_json(path)
    if not isinstance(records, list):
        raise PreparationError(f"{path} is not a list of records")
    for key in needs:
        for number, record in enumerate(records):
            if not isinstance(record, dict) or key not in record:
                raise PreparationError(f"{path}: entry {number} has no {key!r}")
    return records


def write_json(data: Any, path: Path, **options: Any) -> None:
    """Write a prepared JSON file in the form of the standard library."""
    with new_file(path) as file:
        file.writelines([json.dumps(data, **options).encode()] if options else json_text.dump(data))


def one_hot(labels: pd.Series[Any], classes: Sequence[Any]) -> pd.DataFrame:
    """Return a column of 0/1 integers for each class, of which every label must be one."""
    hits = labels.to_numpy()[:, None] == np.asarray(classes, dtype=object)[None, :]
    unknown = labels[~hits.any(axis=1)]
    if len(unknown):
        raise PreparationError(
            f"column {labels.name!r} has {unknown.iloc[0]!r}, none of the {len(classes)} classes"
        )
    return pd.DataFrame(hits.astype(np.int64), columns=list(classes), index=labels.index)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong while *path* is read into one error that names it."""
    try:
        yield
    except PreparationError:
        raise
    except FileNotFoundError:
        raise PreparationError(f"{path}: no such file in the raw data") from None
    except UnicodeDecodeError as error:
        raise PreparationError(f"{path} is not {error.encoding} text: {error.reason}") from None
    except Exception as error:
        raise PreparationError(f"{path} cannot be read: {error}") from error
