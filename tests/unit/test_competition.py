"""Competitions as data: strict reading, lazy loading, whole preparation or none."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from pytest_mlebench import list_competitions, load_competition
from pytest_mlebench.competition import read_competition
from pytest_mlebench.errors import (
    CompetitionFileError,
    ConfigError,
    GraderError,
    InvalidSubmission,
    PreparationError,
)
from pytest_mlebench.registry import Registry, builtin_competitions


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a competition to be spoilt."""
    target = tmp_path / "competitions" / "demo-bakery"
    shutil.copytree(builtin_competitions() / "demo-bakery-orders", target)
    return target


def change(folder: Path, before: str, after: str) -> None:
    path = folder / "competition.toml"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('title = "Bakery Orders"\n', "", "competition.toml: title is missing"),
        ("title =", "tittle =", "competition.toml: title is missing, did you mean 'tittle'?"),
        (
            'category = "',
            'colour = "red"\ncategory = "',
            "competition.toml: colour is not a known key",
        ),
        (
            'title = "Bakery Orders"',
            "title = 3",
            "competition.toml: title must be a string, given: 3",
        ),
        ('"demo"', '"easy"', "complexity must be one of low, medium, high, dev, demo, custom"),
        ("teams = 240", "teams = 0", "leaderboard: teams must be positive, given: 0"),
        ("teams = 240", "teams = true", "leaderboard: teams must be a whole number, given: True"),
        (
            "percentiles = [",
            "percentiles = [9999.0,",
            "percentiles must have 101 numbers, given: 102",
        ),
        ('direction = "lower"\n', "", "metric: direction is missing"),
        (
            'direction = "lower"',
            'direction = "higher"',
            "leaderboard: percentiles must go from the best score to the worst; higher is better",
        ),
        ('kind = "number"', 'kind = "numbr"', "submission: kind must be one of number, unbounded,"),
        ("title = ", "title = = ", "competition.toml: not valid TOML:"),
    ],
)
def test_a_wrong_key_names_file_and_key(
    folder: Path, before: str, after: str, message: str
) -> None:
    change(folder, before, after)
    with pytest.raises(CompetitionFileError, match=re.escape(message)):
        read_competition(folder)


def test_an_unknown_metric_suggests_known_ones(folder: Path) -> None:
    (folder / "grade.py").unlink()
    change(folder, 'name = "cost of wrong orders"', 'name = "rsme"')
    with pytest.raises(CompetitionFileError, match="'rsme' is not a known metric, did you mean"):
        read_competition(folder)
    change(folder, 'name = "rsme"', 'name = "xyzzy"')
    listed = r"'xyzzy' is not a known metric \(known: accuracy, .*, rmse, .*\); a competition of"
    with pytest.raises(CompetitionFileError, match=listed):
        read_competition(folder)


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ('name = "map_at_k"', "metric: k is missing"),
        ('name = "mae"\ndigts = 3', "metric: digts is not a known key, did you mean 'digits'?"),
    ],
)
def test_the_parameters_of_a_shared_metric_are_known(
    folder: Path, after: str, message: str
) -> None:
    (folder / "grade.py").unlink()
    change(folder, 'name = "cost of wrong orders"\ndirection = "lower"', after)
    for parameter in ("shortage = 3.0", "surplus = 1.0"):
        change(folder, f"{parameter}\n", "")
    with pytest.raises(CompetitionFileError, match=re.escape(message)):
        read_competition(folder)


def test_all_that_is_wrong_with_a_file_is_said_at_once(folder: Path) -> None:
    change(folder, 'kind = "number"', 'kynd = "number"')
    change(folder, "title =", "tittle =")
    change(folder, "teams = 240", "teams = 0")
    with pytest.raises(CompetitionFileError) as caught:
        read_competition(folder)
    assert str(caught.value).splitlines() == [
        f"{folder / 'competition.toml'}: 3 problems:",
        "  leaderboard: teams must be positive, given: 0",
        "  submission: kynd is not a known key, did you mean 'kind'?",
        "  title is missing, did you mean 'tittle'?",
    ]


def test_choosing_competitions_finds_every_broken_one(folder: Path) -> None:
    shutil.copytree(folder, folder.parent / "other")
    change(folder, "title =", "tittle =")
    change(folder.parent / "other", "teams = 240", "teams = 0")
    registry = Registry([folder.parent])
    with pytest.raises(CompetitionFileError) as caught:
        registry.select((), ["demo-bakery", "demo-digits", "other"])
    first, second = str(caught.value).splitlines()
    assert first.endswith("demo-bakery/competition.toml: title is missing, did you mean 'tittle'?")
    assert second.endswith("other/competition.toml: leaderboard: teams must be positive, given: 0")


@pytest.mark.parametrize(
    ("certain", "label"), [("", "leak"), ("certain = false\n", "suspected leak")]
)
def test_a_suspected_leak_is_a_leak_that_says_so(folder: Path, certain: str, label: str) -> None:
    with (folder / "competition.toml").open("a") as file:
        file.write(f'\n[[known_issues]]\nkind = "leak"\nwhat = "a test"\n{certain}')
    competition = read_competition(folder)
    assert competition.is_leaky
    assert [issue.label for issue in competition.known_issues] == [label]


def test_the_kind_of_an_issue_is_one_of_those_there_are(folder: Path) -> None:
    with (folder / "competition.toml").open("a") as file:
        file.write('\n[[known_issues]]\nkind = "leak?"\nwhat = "a test"\n')
    message = (
        r"known_issues\[0\]: kind must be one of leak, .*, given: 'leak\?', did you mean 'leak'"
    )
    with pytest.raises(CompetitionFileError, match=message):
        read_competition(folder)


def test_what_the_benchmark_suspects_is_counted_as_leaky() -> None:
    suspected = {
        name
        for name in list_competitions("all")
        for issue in load_competition(name).known_issues
        if issue.is_leak and not issue.certain
    }
    assert suspected == {
        "cassava-leaf-disease-classification",
        "siim-isic-melanoma-classification",
    }
    assert all(load_competition(name).is_leaky for name in suspected)
    assert all(load_competition(name).is_suspected for name in suspected)


def test_preparation_that_fails_leaves_nothing_behind(folder: Path, tmp_path: Path) -> None:
    raw, public = tmp_path / "data/raw", tmp_path / "data/public"
    raw.mkdir(parents=True)
    (raw / "days.csv").write_text("id,shop\n1,a\n")
    competition = read_competition(folder)
    with pytest.raises(PreparationError, match=r"demo-bakery: .*days.csv has no column 'day'"):
        competition.prepare(raw, public, tmp_path / "data/private")
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["raw"]


def test_a_failing_preparation_keeps_what_was_there(folder: Path, tmp_path: Path) -> None:
    competition = read_competition(folder)
    raw, public, private = (tmp_path / "data" / name for name in ("raw", "public", "private"))
    raw.mkdir(parents=True)
    competition.generate(raw)
    competition.prepare(raw, public, private)
    before = (public / "train.csv").read_bytes()
    (raw / "days.csv").write_bytes(b"\xff\xfe broken")
    with pytest.raises(PreparationError, match=r"days\.csv"):
        competition.prepare(raw, public, private)
    assert (public / "train.csv").read_bytes() == before


def test_a_bug_in_a_grader_is_not_the_agents_fault(folder: Path, tmp_path: Path) -> None:
    (folder / "grade.py").write_text("def grade(submission, answers, **_):\n    return 1 / 0\n")
    competition = read_competition(folder)
    raw, public, private = (tmp_path / name for name in ("raw", "public", "private"))
    raw.mkdir()
    competition.generate(raw)
    competition.prepare(raw, public, private)
    sample = tmp_path / "submission.csv"
    shutil.copy(public / "sample_submission.csv", sample)
    competition.check(sample, public)
    with pytest.raises(GraderError, match="the grader failed: ZeroDivisionError"):
        competition.score(sample, private)
    sample.write_text("id\n1\n")
    with pytest.raises(InvalidSubmission, match="column 'loaves' is missing"):
        competition.score(sample, private)


def test_code_is_what_the_file_says_even_if_it_changed_within_a_second(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    code, compiled = folder / "grade.py", folder / "__pycache__"
    shutil.rmtree(compiled, ignore_errors=True)  # of the folder that this one is a copy of
    for value in ("1", "2"):
        code.write_text(f"VALUE = {value}\n")
        os.utime(code, (10**9, 10**9))  # as large and as old as the other
        assert getattr(read_competition(folder).grader, "VALUE", None) == int(value)
    assert not compiled.exists()


def test_every_split_is_made_of_competitions_of_its_complexity() -> None:
    sizes = {"low": 22, "medium": 38, "high": 15, "dev": 7}
    for name, size in sizes.items():
        ids = list_competitions(name)
        assert len(ids) == len(set(ids)) == size
        assert {load_competition(i).complexity for i in ids} == {name}
    assert len(list_competitions("all")) == 75
    assert list_competitions("lite") == list_competitions("low")
    assert set(list_competitions("systemcard")) <= set(list_competitions("all"))


def test_every_competition_is_described_and_of_some_size() -> None:
    for competition_id in list_competitions():
        competition = load_competition(competition_id)
        lines = competition.description.splitlines()
        assert lines[0].startswith("# ")
        assert 30 <= len(lines) <= 130, competition_id
        for path in competition.folder.glob("*.py"):
            assert len(path.read_text().splitlines()) < 200


def test_two_competitions_of_one_name_are_refused(folder: Path) -> None:
    shutil.copytree(folder, folder.parent / "demo-digits")
    with pytest.raises(ConfigError, match="two competitions are called 'demo-digits'"):
        Registry([folder.parent])
