"""Texts become csv as pandas writes them, with quotes where they need some."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mlebench.preparing import csv_columns, csv_parts, number_text, write_csv
from pytest_mlebench.preparing.csv_columns import RowWriter, blocks_of, fast_text
from pytest_mlebench.preparing.csv_parts import by_pandas, table_text
from pytest_mlebench.preparing.csv_text import NotProven, Style, rows_text

STYLES: list[dict[str, Any]] = [
    {},
    {"sep": "\t"},
    {"sep": " "},
    {"quoting": csv.QUOTE_NONNUMERIC},
    {"float_format": "%.3g"},
]


class Word(str):
    """A text of another type."""

    def __str__(self) -> str:
        return "not its content"


def cells() -> st.SearchStrategy[Any]:
    """What may be in a column of texts."""
    others = [None, float("nan"), pd.NA, pd.NaT, True, 1, 2.5, 1e-7, float("inf"), b"b", ("a", "b")]
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    odd = st.text(',\t "\n\r\\\0\1\x1f\x7f\x85\u2028ü🙂a', max_size=5)
    return st.one_of(odd, odd, odd, texts, texts.map(Word), st.sampled_from(others))


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    """Tables of texts, most of them with nothing else, some with numbers between."""
    rows = draw(st.integers(0, 9))
    texts = st.text(',"\n\rab \t', max_size=3)
    numbers = st.one_of(st.integers(0, 9), st.floats(0, 1))
    columns = [
        draw(st.lists(kind, min_size=rows, max_size=rows))
        for kind in draw(st.lists(st.sampled_from([texts, cells(), numbers]), min_size=1))
    ]
    kinds = [
        None if column and all(type(cell) is float for cell in column) else object
        for column in columns
    ]
    pairs = enumerate(zip(columns, kinds, strict=True))
    return pd.DataFrame({n: pd.Series(column, dtype=kind) for n, (column, kind) in pairs})


def expected_text(table: pd.DataFrame, style: dict[str, Any]) -> bytes:
    """Return what the csv module writes, in which no Python quotes for a carriage return."""
    return by_pandas(table, {"index": False, "header": False, **style})


@pytest.mark.parametrize("library", ["orjson", "json"])
@pytest.mark.parametrize("rows", [2, 1000], ids=["blocks of two rows", "one block"])
def test_any_texts_are_written_as_pandas_writes_them(
    library: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_columns, "BLOCK_CELLS", rows)
    monkeypatch.setattr(csv_columns, "MIN_BLOCK_ROWS", rows)
    if library == "json":
        monkeypatch.setattr(number_text, "orjson", None)

    @settings(max_examples=300, deadline=None)
    @given(tables(), st.sampled_from(STYLES))
    def check(table: pd.DataFrame, style: dict[str, Any]) -> None:
        expected = expected_text(table, style)
        assert table_text(table, {"index": False, **style}) == expected
        for text in (fast_text, lambda *given: rows_text(blocks_of(*given), given[1])):
            try:
                assert text(table, Style(**style)) == expected
            except NotProven:
                continue

    check()


@pytest.mark.parametrize("style", STYLES[:4], ids=str)
@pytest.mark.parametrize(
    "text", ["a", "", ",", '"', "\n", "\r", " ", "\t", "\\", "ü", "\x01", '","']
)
def test_a_text_has_quotes_only_where_it_needs_them(text: str, style: dict[str, Any]) -> None:
    for table in (
        pd.DataFrame({"a": [text, "b", text, '"c"']}, dtype=object),
        pd.DataFrame({"a": ["b", text], "n": [1, 2], "x": [0.5, np.nan], "c": [text, ",\n"]}),
    ):
        if csv.QUOTE_NONNUMERIC in style.values():
            table = table.drop(columns="x", errors="ignore")  # noqa: PLW2901 - pandas quotes a gap
        assert fast_text(table, Style(**style)) == expected_text(table, style)


def test_the_rows_with_a_null_character_alone_are_left_to_pandas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_columns, "BLOCK_CELLS", 2)
    monkeypatch.setattr(csv_columns, "MIN_BLOCK_ROWS", 2)
    left = []

    def noted(table: pd.DataFrame, options: dict[str, Any]) -> bytes:
        left.append(len(table))
        return by_pandas(table, options)

    monkeypatch.setattr(csv_parts, "by_pandas", noted)
    table = pd.DataFrame({"a": ["b", "c", "d", "e\0,", "f", "g,"]}, dtype=object)
    write_csv(table, tmp_path / "t.csv")
    assert left == [0, 2]  # the header first
    assert (tmp_path / "t.csv").read_bytes() == b'a\nb\nc\nd\n"e\0,"\nf\n"g,"\n'


@pytest.mark.parametrize("text", ["\ud800", "a,\udc0d"])
def test_half_a_character_is_refused_as_pandas_refuses_it(text: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"a": ["b", text]}, dtype=object)
    with pytest.raises(UnicodeEncodeError):
        table.to_csv(tmp_path / "theirs.csv")
    with pytest.raises(UnicodeEncodeError):
        write_csv(table, tmp_path / "ours.csv")


def test_a_type_of_texts_is_written_by_its_content() -> None:
    table = pd.DataFrame({"a": ["b", Word("c,")]}, dtype=object)
    file = io.StringIO()
    table.to_csv(file, index=False, header=False, lineterminator="\n")
    assert fast_text(table, Style()) == file.getvalue().encode() == b'b\n"c,"\n'


def test_columns_that_change_their_cells_on_the_way_are_written_as_before() -> None:
    blocks = [["a", "b"], ["a", np.nan], [None, "b"], [1, "c,"], [2.5, np.nan], ["", "d"], ["e"]]
    writer = RowWriter(Style())
    for block in blocks:
        column = pd.Series(block, dtype=object)
        table = pd.DataFrame({"x": column, "n": 7})
        columns = [np.asarray(column, dtype=object), table["n"].to_numpy()]
        assert writer.text(columns) == expected_text(table, {})
