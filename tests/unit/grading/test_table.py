"""A csv file whose columns are parsed when they are asked for."""

from __future__ import annotations

import pytest
from submission_rules import make_rules

from pytest_mlebench.errors import GraderError, InvalidSubmission
from pytest_mlebench.grading.table import CsvTable

TEXT = make_rules(id="id", targets=["x"], kind="text")
NUMBER = make_rules(id="id", targets=["x"])


def refused(error: Exception) -> Exception:
    return InvalidSubmission(f"{type(error).__name__}: {error}")


def table(text: str, rules: object = TEXT, max_rows: int | None = None) -> CsvTable:
    return CsvTable(text.encode(), rules, refused, max_rows=max_rows)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["a", "07", "1e309"], ["a", "07", "1e309"]),
        (["1e309", "2"], ["1e309", "2"]),
        (["99999999999999999999", "2"], ["99999999999999999999", "2"]),
        (["07", "8"], [7, 8]),
        (["0.50", "8"], [0.5, 8.0]),
        (["true", "False"], [True, False]),
    ],
)
def test_a_column_of_texts_is_read_as_text(cells: list[str], expected: list[object]) -> None:
    text = "id,x\n" + "".join(f"{row},{cell}\n" for row, cell in enumerate(cells))
    assert table(text)["x"].tolist() == expected


def test_gaps_stay_gaps_beside_a_number_too_large_for_64_bits() -> None:
    cells = table("id,x\n0,99999999999999999999\n1,\n2,NA\n")["x"]
    assert cells.isna().tolist() == [False, True, True]


@pytest.mark.parametrize("digits", [309, 4300, 5000])
def test_a_number_of_any_length_is_read(digits: int) -> None:
    long = "9" * digits
    assert table(f"id,x\n0,{long}\n1,0.5\n", NUMBER)["x"].tolist() == [long, "0.5"]
    assert table(f"id,x\n{long},1\n7,0.5\n", NUMBER)["id"].tolist() == [long, "7"]


def test_rows_beyond_the_bound_are_refused_before_all_are_read() -> None:
    many = "id,x\n" + "1,2\n" * 5000
    with pytest.raises(InvalidSubmission, match="TooManyRows: 100"):
        table(many, NUMBER, max_rows=100)["x"]
    with pytest.raises(InvalidSubmission, match="TooManyRows: 100"):
        _ = table(many, NUMBER, max_rows=100).layout
    assert len(table(many, NUMBER, max_rows=5000)) == 5000


def test_only_some_columns_are_parsed_of_a_file_that_is_known_to_be_plain() -> None:
    ragged = "id,x,more\n1,2,3\n2,3,4,5\n"
    with pytest.raises(InvalidSubmission, match="Expected 3 fields in line 3, saw 4"):
        table(ragged, NUMBER, max_rows=10)["x"]
    plain = table("id,x,more\n1,2,a\n2,3,b\n", NUMBER, max_rows=10)
    assert plain.layout is not None
    assert plain["x"].tolist() == [2, 3]


def test_what_is_wrong_with_a_file_of_ours_is_not_the_agents_fault() -> None:
    damaged = CsvTable(b'id,x\n1,"2\n', NUMBER, lambda error: GraderError(str(error)))
    with pytest.raises(GraderError, match="EOF inside string"):
        damaged["x"]
