"""Records of a long list are read and written a few at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import open_records, record_file

RECORDS: list[dict[str, Any]] = [
    {"id": f"{number}", "band": [number / 8, -1.5, 1e-7], "text": "} , {"[: number + 1], "n": {}}
    for number in range(6)
]


@pytest.fixture(autouse=True)
def _one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_file, "LOT_BYTES", 1)
    monkeypatch.setattr("pytest_mlebench.host.crew.MAX_CREW", 1)


@pytest.mark.parametrize("indent", [None, 1])
def test_records_are_written_in_any_order_with_some_of_their_keys(
    indent: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "r.json"
    path.write_text(f" {json.dumps(RECORDS, indent=indent)}\n")
    order = [4, 0, 3]
    with open_records(path, needs=["band"], keep=["id"]) as records:
        assert len(records) == 6
        assert records.known == {"id": ["0", "1", "2", "3", "4", "5"]}
        expected = [RECORDS[number] for number in order]
        assert b"".join(records.text(order)).decode() == json.dumps(expected)
        some = [{"n": record["n"], "id": record["id"]} for record in expected]
        assert b"".join(records.text(order, ["n", "id"])).decode() == json.dumps(some)
        assert b"".join(records.text([])) == b"[]"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"id": 1}', "is not a list of records"),
        ("[1, 2]", "cannot be read"),
        ('[{"id": 1}, {"x": 2}]', "entry 1 has no 'id'"),
        ('[{"id": 1} {"id": 2}]', "a comma or the end of the list is missing at byte 11"),
        ('[{"id": 1}, {"id": 2', "the record at byte 12 does not end"),
        ('[{"id": 1}', "a comma or the end of the list is missing"),
        ("", "cannot be read"),
    ],
)
def test_a_list_that_is_broken_is_named(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(PreparationError) as caught, open_records(path, needs=["id"], keep=[]):
        pass
    assert str(caught.value).startswith(str(path))
    assert problem in str(caught.value)


def test_a_list_without_records_has_none(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("[ ]")
    with open_records(tmp_path / "r.json", needs=["id"], keep=["id"]) as records:
        assert len(records) == 0
