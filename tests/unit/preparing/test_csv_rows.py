"""Rows of a file on disk are, in every respect, those of the same file in memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.host import crew
from pytest_mlebench.preparing import (
    csv_rows,
    csv_source,
    gather,
    open_rows,
    read_csv,
    split_indices,
)
from pytest_mlebench.preparing.csv_rows import FileRows, Rows, TableRows

PLAIN = "id,x,name,flag\n1,0.5,some long name,True\n2,-12.25,another long name,False\n3,,it,True\n"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that is done a part at a time is done a few bytes at a time, in one process."""
    monkeypatch.setattr(csv_rows, "MIN_INDEXED_BYTES", 0)
    monkeypatch.setattr(csv_rows, "MIN_COPIED_BYTES", 50)
    monkeypatch.setattr(csv_rows, "MAX_COPIED_BYTES", 50)
    monkeypatch.setattr(csv_rows, "MIN_REWRITTEN_BYTES", 50)
    monkeypatch.setattr(csv_rows, "MAX_REWRITTEN_BYTES", 50)
    monkeypatch.setattr(csv_source, "PART_BYTES", 50)
    monkeypatch.setattr(gather, "BLOCK_BYTES", 30)
    monkeypatch.setattr(gather, "MAX_GAP_BYTES", 10)
    monkeypatch.setattr(gather, "PIECE_ROWS", 2)
    monkeypatch.setattr(crew, "MAX_CREW", 1)


def in_memory(path: Path) -> TableRows | str:
    try:
        return TableRows(read_csv(path))
    except PreparationError as error:
        return str(error)


def written(rows: Rows, order: Any, target: Path, **changes: Any) -> bytes:
    rows.write(order, target, **changes)
    return target.read_bytes()


def assert_same(path: Path, order: Any) -> type[Rows]:
    """Compare what can be had of a file both ways, and return which one was taken for it."""
    expected = in_memory(path)
    if isinstance(expected, str):
        with pytest.raises(PreparationError) as caught, open_rows(path):
            pass
        assert str(caught.value) == expected
        return TableRows
    target = path.with_name("written.csv")
    with open_rows(path) as found:
        assert len(found) == len(expected)
        order = np.array([n % len(found) for n in order], dtype=np.int64) if len(found) else order
        if not len(found):
            return type(found)
        assert written(found, order, target) == written(expected, order, target)
        pd.testing.assert_frame_equal(found.table(order), expected.table(order))
        first, last = expected.whole.columns[0], expected.whole.columns[-1]
        for name in (first, last):
            pd.testing.assert_series_equal(found.column(name), expected.column(name))
        changes = {
            "assign": {first: range(len(order)), "new": 0.5},
            "columns": ["new", last, first],
        }
        assert written(found, order, target, **changes) == written(
            expected, order, target, **changes
        )
        return type(found)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.rstrip("\n"),
        "a,b\n1,2\n3,4.5\n5,\n",  # whole numbers that are decimals elsewhere
        "a,b\n" + "1,2\n" * 40 + "1,2.5\n",
        "a,b\n" + "1,2\n" * 40 + "1,x\n",
        "a,b\n" + "1,a long text here\n" * 9 + "1,NA\n2,null\n3,n/a\n4,#N/A N/A\n",
        "a,b\n" + "1,a long text here\n" * 9 + "0x1,other long text\n",
        'a,b\n1,"x, y"\n2,"say ""hi"""\n3,"two\nlines"\n4,"needless"\n5,""\n',
        "a,b\n1.50,+2\n3 ,1e5\n0.1,007\n",
        "a,b\n0.1000000000000000055,1\n1e-7,2\n1e22,3\n",
        "a,b\nTrue,x\nFalse,y\n",
        "a,b\n" + "1,2\n" * 40 + "True,2\n",
        "a\n1\n2\n",
        '"a","b"\n1,2\n',
        "a,b\nü,中\n🙂,x\n",
        "a,b\r\n1,2\r\n3,4.50\r\n",
        "a,b\r\n" + "1,a long text here\r\n" * 9 + "2,another long text",
        "a,b\r\n" + "1,2\r\n" * 20 + "3,4\n" * 20,
        '"a","b"\r\n"1","two\nlines"\r\n"2","two\r\nlines, ""so"""\r\n"3","lone\rreturn"\r\n',
        "\ufeffa,b\n1,2\n3,x\n",
        '\ufeff"a","b"\r\n1,2\r\n3,x\r\n',
    ],
    ids=range(21),
)
def test_regular_files_stay_on_the_disk(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text, newline="")
    assert assert_same(tmp_path / "t.csv", [4, 0, 2, 1, 1, 3]) is FileRows


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    "text",
    [
        "a,b\r\n1,2\r\n\r\n3,4\r\n",
        "a,b\n1,2\r3,4\n",
        'a,b\n1,"2"\r"3",4\n',
        "a,b\r\n1,2\r\r\n3,4\r\n",
        "a,b\n1,2\n\n3,4\n",
        "a,b\n1,2\n  \n3,4\n",
        'a,b\n1,5" pipe\n2,6" pipe\n',
        'a,b\n1,"open\n2,3\n',
        "a,b\n1,2,3\n4,5,6\n",
        "a,b\n1,2\n3,4,5\n",
        "a,b\nTrue,1\n,2\n",
        "a,b\n" + "1,2\n" * 48 + "True,2\n" * 7,  # parts of one kind each
        "a,b\n0,1,2\n1,4,5\n2,4,5\n",
        "a,b\n18446744073709551615,2\n",
        "a,b\n",
        "a,b",
        "",
    ],
    ids=range(17),
)
def test_other_files_are_read_as_a_whole(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text, newline="")
    assert assert_same(tmp_path / "t.csv", [1, 0, 1]) is TableRows


def csv_texts() -> st.SearchStrategy[str]:
    """Texts of two or three columns, most of them csv."""
    number = st.one_of(
        st.integers(-999, 10**19).map(str),
        st.floats(allow_nan=False).map(repr),
        st.sampled_from(["", "1", "1.0", "1.50", "NA", "nan", "1e5", " 1", "-0", "True", "False"]),
    )
    text = st.one_of(
        st.sampled_from(["a long enough text", "short", "NA", "", '"quoted, text"', '"a\nb"']),
        st.text('ab,"\n \r', max_size=5),
    )
    kinds = st.lists(st.sampled_from([number, text]), min_size=1, max_size=3)
    rows = kinds.flatmap(lambda each: st.lists(st.tuples(*each), max_size=12))
    ending = st.sampled_from(["\n", "", "\n\n", "\r\n"])

    def build(cells: list[tuple[str, ...]], start: str, between: str, end: str) -> str:
        header = ",".join(f"c{n}" for n in range(len(cells[0]) if cells else 2))
        return start + between.join([header, *map(",".join, cells)]) + end

    mark = st.sampled_from(["", "\ufeff"])
    texts = st.builds(build, rows, mark, st.sampled_from(["\n", "\r\n"]), ending)
    # of "\n \r " the parser of pandas 2 makes rows until the memory is full
    return texts if pd.__version__ >= "3" else texts.filter(lambda text: "\r " not in text)


@pytest.mark.usefixtures("tiny")
def test_any_text_gives_the_same_rows(tmp_path: Path) -> None:
    taken: set[type[Rows]] = set()

    @settings(max_examples=400, deadline=None)
    @given(csv_texts(), st.lists(st.integers(0, 99), min_size=1, max_size=9))
    @example("c0,c1\n1,2\n", [0])
    @example("c0,c1\na long enough text,\n", [0, 0, 0])
    @example("c0,c1,c2\na long text,,another one\nanother one,1.50,a long text\n", [0, 1, 0, 0, 1])
    @example("c0,c1\n0,0\n0,0\n0,0\n0,0.0\n0,9223372036854775808\n0,\n", [0])
    @example("c0,c1\n0,0\n0,0\n0,0\n0,0\n0,9223372036854775808\n0,\n", [5])
    def check(text: str, order: list[int]) -> None:
        (tmp_path / "t.csv").write_text(text, newline="")
        taken.add(assert_same(tmp_path / "t.csv", order))

    check()
    assert taken == {FileRows, TableRows}


def test_a_row_takes_16_bytes_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (csv_rows, "MIN_INDEXED_BYTES", 0),
        (csv_rows, "MIN_COPIED_BYTES", 1 << 16),
        (csv_rows, "MAX_COPIED_BYTES", 1 << 16),
        (csv_rows, "RUN_ROWS", 1 << 14),
        (csv_source, "PART_BYTES", 1 << 16),
        (gather, "BLOCK_BYTES", 1 << 16),
        (crew, "MAX_CREW", 1),
    ):
        monkeypatch.setattr(module, name, value)
    count = 400_000
    (tmp_path / "t.csv").write_text("a\n" + "1\n2\n" * (count // 2))
    tracemalloc.start()
    try:
        with open_rows(tmp_path / "t.csv") as rows:
            train, _ = split_indices(len(rows), 0.1)
            before = tracemalloc.get_traced_memory()[0]
            rows.write(train, tmp_path / "train.csv")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 16 * count <= before  # where a row is, and where it goes
    assert most <= 16 * count + (4 << 20)
    assert (tmp_path / "train.csv").stat().st_size == 2 + 2 * len(train)
