"""A csv file read in parts is what it is when read at once."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pytest_mlebench import _csv
from pytest_mlebench._csv import read_frame

CELLS = {
    "whole": ["1", "-3", "0"],
    "fraction": ["0.1", "1e-5", "-2.5"],
    "both": ["1", "0.30000000000000004", "9007199254740993"],
    "gaps": ["1", "", "NA"],
    "infinite": ["inf", "-inf", "2"],
    "boolean": ["True", "False"],
    "boolean with gaps": ["True", "False", ""],
    "boolean or text": ["True", "False", "", "x"],
    "boolean or number": ["True", "2", "False"],
    "text": ["a", "b c", "ü"],
    "text with gaps": ["a", "", "NA"],
    "text or number": ["1.0", "a", "07"],
    "quoted": ['"a,b"', '"two\nlines"', '"1"'],
    "beyond 63 bits": ["9223372036854775808", "1"],
    "beyond 63 bits and below zero": ["9223372036854775808", "-1"],
    "beyond 64 bits": ["118446744073709551616", "1"],
}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"index_col": False},
    {"dtype": {"a": object}},
    {"keep_default_na": False, "na_values": [""]},
    {"usecols": ["b"]},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("cells", CELLS.values(), ids=CELLS.keys())
def test_parts_make_the_whole(
    cells: list[str], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = random.Random(0)
    for rows in (0, 1, 2, 3, 8, 8, 8, 8):
        lines = [f"{source.choice(cells)},{source.choice(cells)}" for _ in range(rows)]
        text = "\n".join(["a,b", *lines, ""]).encode()
        monkeypatch.setattr(_csv, "ROWS", 1000)
        whole = read_frame(io.BytesIO(text), **options)
        monkeypatch.setattr(_csv, "ROWS", 2)
        parts = read_frame(io.BytesIO(text), **options)
        pd.testing.assert_frame_equal(parts, whole, check_exact=True)
        for column in whole:
            assert [type(cell) for cell in parts[column]] == [type(cell) for cell in whole[column]]


def test_a_column_that_changes_is_read_again_from_a_path_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_csv, "ROWS", 2)
    path = tmp_path / "changing.csv"
    path.write_text("id,x\n1,1\n2,2\n3,three\n")
    assert list(read_frame(path)["x"]) == ["1", "2", "three"]


def test_an_open_file_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_csv, "ROWS", 1)
    path = tmp_path / "numbers.csv"
    path.write_text("id,x\n1,1\n2,2\n")
    with path.open("rb") as file:
        assert list(read_frame(file)["x"]) == [1, 2]
        assert not file.closed


def test_a_row_that_is_too_long_is_named_by_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_csv, "ROWS", 2)
    text = b"a,b\n1,1\n2,2\n3,3\n4,4,4\n"
    with pytest.raises(pd.errors.ParserError, match="Expected 2 fields in line 5, saw 3"):
        read_frame(io.BytesIO(text))
