"""Strict tables: one mistake is raised at once, those of a whole file are collected."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mlebench._toml import Table, read_toml
from pytest_mlebench.errors import AgentFileError, CompetitionFileError

TEXT = """
tittle = "A"
teams = "many"
[inner]
values = [1, "two"]
colour = "red"
[[notes]]
kind = "good"
[[notes]]
kind = "goood"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some.toml"
    path.write_text(TEXT)
    return path


def test_a_table_raises_the_first_mistake_at_once() -> None:
    table = Table({"tittle": "A"}, "here", AgentFileError)
    with pytest.raises(AgentFileError, match=r"^here: title is missing, did you mean 'tittle'\?$"):
        table.text("title")


def test_a_file_that_is_collected_reports_everything_when_it_is_finished(file: Path) -> None:
    table = read_toml(file, collect=True)
    assert table.text("title") == ""
    assert table.count("teams") == 1
    assert table.table("inner").numbers("values") == ()
    assert [note.choice("kind", ("good", "bad")) for note in table.tables("notes")]
    with pytest.raises(CompetitionFileError) as caught:
        table.finish()
    assert str(caught.value).splitlines() == [
        f"{file}: 5 problems:",
        "  teams must be a whole number, given: 'many'",
        "  inner: values must be a list of numbers, given: 'two'",
        "  notes[1]: kind must be one of good, bad, given: 'goood', did you mean 'good'?",
        "  inner: colour is not a known key (known: values)",
        "  title is missing, did you mean 'tittle'?",
    ]


def test_a_single_mistake_is_one_line(file: Path) -> None:
    file.write_text("teams = 0")
    table = read_toml(file, collect=True)
    table.count("teams")
    with pytest.raises(CompetitionFileError) as caught:
        table.finish()
    assert str(caught.value) == f"{file}: teams must be positive, given: 0"


def test_a_missing_table_is_one_mistake_whatever_it_should_hold(file: Path) -> None:
    file.write_text("")
    table = read_toml(file, collect=True)
    inner = table.table("inner")
    assert (inner.text("name"), inner.count("teams"), inner.numbers("values")) == ("", 1, ())
    with pytest.raises(CompetitionFileError) as caught:
        table.finish()
    assert str(caught.value) == f"{file}: inner is missing"


def test_a_key_has_one_mistake_at_most(file: Path) -> None:
    file.write_text("name = 3")
    table = read_toml(file, collect=True)
    table.text("name")
    table.refuse("name", "is ugly")
    with pytest.raises(CompetitionFileError, match=r"name must be a string, given: 3$"):
        table.finish()


def test_a_known_key_is_never_taken_for_a_slip(file: Path) -> None:
    file.write_text('names = ["a"]')
    table = read_toml(file, collect=True)
    table.text("name")
    table.texts("names")
    with pytest.raises(CompetitionFileError, match=r"name is missing$"):
        table.finish()


@pytest.mark.parametrize("text", ["-1", "1.5", "inf", "nan"])
def test_a_whole_number_is_zero_or_more_and_finite(file: Path, text: str) -> None:
    file.write_text(f"bytes = {text}")
    with pytest.raises(CompetitionFileError, match="bytes must be a whole number, zero or more"):
        read_toml(file).whole("bytes")


def test_a_whole_number_may_be_written_as_a_float(file: Path) -> None:
    file.write_text("bytes = 3.0\nseed = 0")
    table = read_toml(file)
    assert (table.whole("bytes"), table.whole("seed"), table.whole("gpus", 2)) == (3, 0, 2)
