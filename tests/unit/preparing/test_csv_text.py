"""Csv text made the fast way is, byte for byte, what pandas writes."""

from __future__ import annotations

import csv
import io
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pytest_mlebench.preparing import csv_columns, csv_parts, number_text, write_csv
from pytest_mlebench.preparing.csv_columns import blocks_of, fast_text
from pytest_mlebench.preparing.csv_parts import by_pandas, table_text
from pytest_mlebench.preparing.csv_text import NotProven, Style, rows_text

OPTIONS: list[dict[str, Any]] = [
    {},
    {"sep": "\t"},
    {"sep": ";"},
    {"quoting": csv.QUOTE_NONNUMERIC},
    {"float_format": "%.10g"},
    {"float_format": "%.3g"},
    {"float_format": "%.10f"},
    {"float_format": "%.10g", "quoting": csv.QUOTE_NONNUMERIC},
]
FOREIGN: list[dict[str, Any]] = [
    {"sep": "ab"},
    {"sep": "."},
    {"quoting": csv.QUOTE_ALL},
    {"float_format": "%.2f, or so"},
    {"float_format": "%8.2f"},
]
SPECIAL = "abc,;\"'\n\r\t 0.eNA\0üß中🙂\\|"


def doubles() -> st.SearchStrategy[float]:
    """Doubles of every magnitude, as they come and as people write them."""
    bits = st.integers(0, 2**64 - 1).map(lambda n: struct.unpack("<d", struct.pack("<Q", n))[0])
    decimals = st.builds(
        lambda digits, places: digits / 10**places,
        st.integers(-(10**17), 10**17),
        st.integers(0, 20),
    )
    near = st.sampled_from([1e-5, 9.9999e-5, 1e-4, 0.1, 1e15, 1e16, 1e17, 9999999999.5, 1e10, 2.5])
    return st.one_of(
        st.floats(), bits, decimals, near, near.map(lambda x: float(np.nextafter(x, 0)))
    )


def cells(rows: int) -> st.SearchStrategy[Any]:
    """A column of one of the types that tables have."""

    def column(values: st.SearchStrategy[Any], dtype: Any) -> st.SearchStrategy[pd.Series[Any]]:
        many = st.lists(values, min_size=rows, max_size=rows)
        return many.map(lambda each: pd.Series(each, dtype=dtype))

    texts = st.text(SPECIAL, max_size=6)
    integers = [
        column(st.integers(np.iinfo(t).min, np.iinfo(t).max), t)
        for t in ("int8", "int32", "int64", "uint8", "uint64")
    ]
    dates = st.datetimes(
        min_value=pd.Timestamp(1900, 1, 1).to_pydatetime(),
        max_value=pd.Timestamp(2200, 1, 1).to_pydatetime(),
    )
    return st.one_of(
        column(doubles(), "float64"),
        column(st.floats(0, 1), "float64"),
        column(st.floats(width=32), "float32"),
        *integers,
        column(st.booleans(), "bool"),
        column(texts, object),
        column(st.one_of(texts, st.none(), st.just(float("nan"))), object),
        column(st.one_of(texts, st.booleans(), st.integers(), doubles()), object),
        column(st.one_of(texts, st.none()), "str" if pd.__version__ >= "3" else "string"),
        column(st.one_of(dates, st.none()), "datetime64[ns]"),
        column(st.one_of(st.integers(-9, 9), st.none()), "Int64"),
        column(st.sampled_from(["a", "b,", '"']), "category"),
    )


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    rows = draw(st.integers(0, 5))
    columns = draw(st.lists(cells(rows), min_size=1, max_size=5))
    table = pd.DataFrame(dict(enumerate(columns)))
    names = st.one_of(st.text(SPECIAL, max_size=4), st.integers(0, 9))
    table.columns = pd.Index(draw(st.lists(names, min_size=len(columns), max_size=len(columns))))
    index = st.lists(st.integers(-9, 9), min_size=rows, max_size=rows)
    return table.set_index(pd.Index(draw(index), dtype="int64"))


def pandas_text(table: pd.DataFrame, options: dict[str, Any]) -> bytes:
    file = io.StringIO()
    options = {"index": False, "header": False, **options}
    table.to_csv(file, lineterminator="\n", **options)
    return file.getvalue().encode()


@pytest.fixture(params=["orjson", "json"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The library that prints numbers."""
    if request.param == "json":
        monkeypatch.setattr(number_text, "orjson", None)
    assert number_text.orjson is not None or request.param == "json"
    return str(request.param)


@pytest.mark.usefixtures("library")
def test_any_table_is_written_as_pandas_writes_it() -> None:
    @settings(max_examples=300, deadline=None)
    @given(frames(), st.sampled_from(OPTIONS))
    def check(table: pd.DataFrame, options: dict[str, Any]) -> None:
        found = table_text(table, {"index": False, **options})
        assert found == by_pandas(table, {"index": False, "header": False, **options})
        if not csv_parts.QUOTES_RETURNS:
            assert found == pandas_text(table, options)

    check()


@pytest.mark.usefixtures("library")
def test_any_file_is_what_pandas_writes(tmp_path: Path) -> None:
    @settings(max_examples=200, deadline=None)
    @given(frames(), st.sampled_from(OPTIONS), st.booleans())
    def check(table: pd.DataFrame, options: dict[str, Any], index: bool) -> None:
        expected = pandas_text(table, {"index": index, "header": True, **options})
        if csv_parts.QUOTES_RETURNS:
            assume(b"\r" not in expected)
        write_csv(table, tmp_path / "t.csv", **({"index": True} if index else {}), **options)
        assert (tmp_path / "t.csv").read_bytes() == expected

    check()


@pytest.mark.parametrize("columns", [1, 3, 7])
def test_dates_of_a_large_table_have_the_form_that_pandas_gives_them(
    columns: int, tmp_path: Path
) -> None:
    rows = 450_000 // columns
    hours = np.zeros(rows)
    hours[4 * (100_000 // columns)] = 5  # the first row of a chunk: all of it is written with hours
    days = pd.Series(pd.to_datetime("2020-01-01") + pd.to_timedelta(hours, "h"))
    table = pd.DataFrame({f"c{n}": days if n == 0 else 1 for n in range(columns)})
    write_csv(table, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes() == pandas_text(table, {"header": True})


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("float_format", [None, "%.10g", "%.1g", "%.12g", "%.13g"])
def test_doubles_of_all_magnitudes_are_written_as_python_writes_them(
    float_format: str | None,
) -> None:
    random = np.random.default_rng(0)
    values = np.concatenate(
        [
            random.integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64),
            random.normal(size=20_000),
            10.0 ** random.uniform(-7, 18, 20_000),
            random.normal(0, 100, 20_000).round(6),
            random.integers(-(10**12), 10**12, 20_000) / 1024,  # many halves among them
            np.nextafter(10.0 ** np.arange(-10.0, 25), 0),
            10.0 ** np.arange(-10.0, 25),
            [0.0, -0.0, np.inf, -np.inf, np.nan],
        ]
    )
    found = rows_text([[values, values]], Style(float_format=float_format)).decode().splitlines()
    print_one = repr if float_format is None else float_format.__mod__
    expected = ["" if np.isnan(value) else print_one(value) for value in values.tolist()]
    assert found == [f"{text},{text}" for text in expected]


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    "value", [1e-7, -1e-7, 1.5e-7, 1e-5, -1e-5, 1.25e-5, 1e-100, 1e16, -1.5e16, 1e100, -np.inf]
)
@pytest.mark.parametrize("others", [[], [0.5], [1e-6, np.nan]], ids=str)
def test_an_exponent_is_written_as_python_writes_it_wherever_it_is(
    value: float, others: list[float]
) -> None:
    table = pd.DataFrame({"x": [*others, value, *others]}).assign(y=value)
    assert table_text(table, {"index": False}) == pandas_text(table, {})


@pytest.mark.parametrize(
    "column",
    [["a", "", "b"], ["", ""], [1.5, np.nan], [True, None], [np.nan, np.nan]],
    ids=str,
)
def test_an_empty_cell_that_is_alone_in_its_row_has_quotes(column: Any) -> None:
    table = pd.DataFrame({"x": pd.Series(column)})
    assert rows_text(blocks_of(table, Style()), Style()) == pandas_text(table, {})


def test_a_table_of_many_blocks_is_written_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_columns, "MIN_BLOCK_ROWS", 7)
    monkeypatch.setattr(csv_columns, "BLOCK_CELLS", 7)
    table = pd.DataFrame({"n": range(100), "text": [f"{n}," for n in range(100)]})
    assert len(blocks_of(table, Style())) == 15
    assert table_text(table, {"index": False}) == pandas_text(table, {})


def test_whole_numbers_as_an_index_take_the_fast_way() -> None:
    table = pd.DataFrame({"y": ["a", "b"]}, index=[7, -3])
    assert rows_text(blocks_of(table, Style(), index=True), Style()) == b"7,a\n-3,b\n"
    with pytest.raises(NotProven):
        blocks_of(table.set_index("y"), Style(), index=True)


@pytest.mark.parametrize(
    "column",
    [
        np.array([1, 2], dtype="int8"),
        np.array([1.5, np.nan]),
        np.array([1e-7, np.inf]),
        np.array([True, False]),
        ["a", 'b "quoted", with\n all'],
        ["a", None],
        ["a", float("nan")],
        [True, None],
        [False, float("nan")],
        ["a", 1],
        [1.5, "a"],
    ],
    ids=str,
)
def test_the_usual_types_take_the_fast_way(column: Any) -> None:
    table = pd.DataFrame({"x": [1, 2], "y": pd.Series(column)})
    expected = pandas_text(table, {})
    assert fast_text(table, Style()) == expected
    assert rows_text(blocks_of(table, Style()), Style()) == expected


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"x": np.array([1.5], dtype="float32")}),
        pd.DataFrame({"x": pd.to_datetime(["2020-01-01"])}),
        pd.DataFrame({"x": ["a", 1, np.float64(2.5), b"b"]}, dtype=object),
        pd.DataFrame({"x": ["a", "b\0"]}),
        pd.DataFrame(index=[1, 2]),
    ],
    ids=["float32", "dates", "mixed", "null-character", "no-columns"],
)
def test_what_is_not_proven_is_left_to_pandas(table: pd.DataFrame) -> None:
    for made in (blocks_of, fast_text):
        with pytest.raises(NotProven):
            made(table, Style())
    assert table_text(table, {"index": False}) == pandas_text(table, {})


@pytest.mark.parametrize("style", FOREIGN)
def test_an_unknown_style_is_left_to_pandas(style: dict[str, Any]) -> None:
    with pytest.raises(NotProven):
        Style(**style)


def test_an_index_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": [0.5, 1.5], "y": ["a", "b"]}, index=[7, 3])
    write_csv(table, tmp_path / "t.csv", index=True)
    assert (tmp_path / "t.csv").read_text() == ",x,y\n7,0.5,a\n3,1.5,b\n"


@pytest.mark.parametrize("with_dates", [False, True])
def test_large_tables_are_written_by_several_processes_in_order(
    with_dates: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_parts, "MIN_SHARED_CELLS", 0)
    monkeypatch.setattr(csv_parts, "CHUNK_CELLS", 30)
    monkeypatch.setattr("pytest_mlebench.host.crew.host_cpus", lambda: 3)
    numbers = np.arange(1000)
    table = pd.DataFrame({"n": numbers, "half": numbers / 2, "text": [f"{n}, " for n in numbers]})
    if with_dates:  # by pandas
        table["day"] = pd.to_datetime("2020-01-01") + pd.to_timedelta(numbers, "D")
    write_csv(table, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes() == pandas_text(table, {"header": True})


def test_processes_that_help_writing_do_without_pandas() -> None:
    code = "import sys, pytest_mlebench.preparing.csv_text; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("text", [",", '"', "\n", ""])
@pytest.mark.parametrize("options", [{}, {"quoting": csv.QUOTE_NONNUMERIC}])
def test_one_text_that_needs_quotes_is_found_among_all(
    text: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_columns, "BLOCK_CELLS", 2)
    monkeypatch.setattr(csv_columns, "MIN_BLOCK_ROWS", 2)
    table = pd.DataFrame({"a": ["b", "c", "d", text, "e", "f"]}, dtype=object)
    style = Style(**options)
    assert fast_text(table, style) == pandas_text(table, options)
    assert rows_text(blocks_of(table, style), style) == pandas_text(table, options)
