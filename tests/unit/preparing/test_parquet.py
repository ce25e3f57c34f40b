"""Parquet tables of a raw tree: read by column, written without an index."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import read_parquet, write_parquet

TABLE = pd.DataFrame({"n": [3, 1, 2], "x": [0.1, 1e-300, 5.0]}, index=[7, 8, 9])


def test_what_is_written_can_be_read_by_column(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "table.parquet"
    write_parquet(TABLE, path)
    found = read_parquet(path, ["x", "n"])
    pd.testing.assert_frame_equal(found, TABLE[["x", "n"]].reset_index(drop=True))


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    write_parquet(TABLE, tmp_path / "table.parquet")
    with pytest.raises(PreparationError, match=r"table\.parquet has no column 'y'$"):
        read_parquet(tmp_path / "table.parquet", ["n", "y"])


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    with pytest.raises(PreparationError, match=r"table\.parquet: no such file in the raw data$"):
        read_parquet(path, ["n"])
    write_parquet(TABLE, path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(PreparationError, match=r"table\.parquet cannot be read: "):
        read_parquet(path, ["n"])
