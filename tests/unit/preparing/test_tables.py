"""Making tables for the answers, linking files by name, and what is said when that fails."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import csv_parts, link_named, one_hot, write_csv


def test_one_hot_has_a_column_for_each_class_and_keeps_the_rows() -> None:
    labels = pd.Series(["b", "a", "b"], index=[7, 3, 5])
    table = one_hot(labels, ("a", "b", "c"))
    assert table.to_dict("list") == {"a": [0, 1, 0], "b": [1, 0, 1], "c": [0, 0, 0]}
    assert table.index.tolist() == [7, 3, 5]
    assert {str(dtype) for dtype in table.dtypes} == {"int64"}


def test_a_label_of_no_class_is_named() -> None:
    with pytest.raises(PreparationError) as caught:
        one_hot(pd.Series(["a", "x"], name="breed"), ["a", "b"])
    assert str(caught.value) == "column 'breed' has 'x', none of the 2 classes"


def test_files_are_linked_by_name(tmp_path: Path) -> None:
    raw, public = tmp_path / "raw", tmp_path / "public"
    for name in ("rust/1.jpg", "2.jpg", "3.jpg"):
        (raw / name).parent.mkdir(parents=True, exist_ok=True)
        (raw / name).write_text(name)
    link_named(pd.Series(["rust/1", 2]), raw, public, ".jpg")
    found = {path.relative_to(public).as_posix() for path in public.rglob("*.jpg")}
    assert found == {"rust/1.jpg", "2.jpg"}
    assert (public / "2.jpg").samefile(raw / "2.jpg")


def test_a_file_that_is_named_but_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PreparationError, match=r"raw/9\.jpg: no such file in the raw data"):
        link_named([9], tmp_path / "raw", tmp_path / "public", ".jpg")


@pytest.mark.parametrize("quotes_returns", [csv_parts.QUOTES_RETURNS, True])
def test_a_lone_carriage_return_is_no_reason_to_quote_in_any_python(
    quotes_returns: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_parts, "QUOTES_RETURNS", quotes_returns)
    texts = ["a\rb", "a,\rb", "a\r\nb", None, "\r", "ü"]
    table = pd.DataFrame({"n": [0.5, 1, 2, 3, 4, 5], "text": texts}, index=[1, 1, 2, 2, 3, 3])
    write_csv(table, tmp_path / "t.csv")
    expected = 'n,text\n0.5,a\rb\n1.0,"a,\rb"\n2.0,"a\r\nb"\n3.0,\n4.0,\r\n5.0,ü\n'
    assert (tmp_path / "t.csv").read_bytes() == expected.encode()
    assert table["text"].iloc[0] == "a\rb"
