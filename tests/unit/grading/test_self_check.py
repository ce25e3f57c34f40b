"""The benchmark's check of its own datasets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import cli, complaint
from reporting import write_competition

from pytest_mlebench.competition import read_competition
from pytest_mlebench.dataset import Dataset
from pytest_mlebench.grading.self_check import check_dataset
from pytest_mlebench.preparing import write_7z, write_zip
from pytest_mlebench.store.store import Store


def _dataset(tmp_path: Path, **options: object) -> Dataset:
    root = write_competition(tmp_path / "competitions", **options)  # type: ignore[arg-type]
    return Store(tmp_path / "store").ensure(read_competition(root / "tiny"))


@pytest.mark.parametrize("extra_columns", ["ignore", "reject"])
def test_the_answers_are_the_best_submission(tmp_path: Path, extra_columns: str) -> None:
    verdict = check_dataset(_dataset(tmp_path, extra_columns=extra_columns))
    assert (verdict.gold, verdict.problems, verdict.notes) == (0, (), ())
    assert verdict.sample == pytest.approx(8.96856)


def test_a_best_submission_without_gold_is_a_problem(tmp_path: Path) -> None:
    verdict = check_dataset(_dataset(tmp_path, gold=-1))
    assert verdict.problems == ("the best submission scores 0, which earns no gold (-1)",)


def test_answers_that_a_sample_beats_are_a_problem(tmp_path: Path) -> None:
    dataset = _dataset(tmp_path)
    folder = dataset.competition.folder
    text = (folder / "competition.toml").read_text()
    (folder / "competition.toml").write_text(f'gold = "gold.csv"\n{text}')
    (dataset.private / "gold.csv").write_text(
        "id,y\n" + "".join(f"{number},-50\n" for number in range(80, 100))
    )
    named = Dataset(read_competition(folder), dataset.public, dataset.private)
    assert check_dataset(named).problems == (
        "the best submission scores 58.95282, which earns no gold (1)",
        "the sample submission (8.96856) beats the best one (58.95282)",
        "the best team's score (0.01) beats the best submission (58.95282)",
    )
    (dataset.private / "gold.csv").write_text("id,y\n80,1\n")
    (problem,) = check_dataset(named).problems
    assert problem.startswith("gold.csv is rejected: 19 rows missing")


def test_a_sample_that_cannot_be_graded_is_a_problem(tmp_path: Path) -> None:
    dataset = _dataset(tmp_path)
    dataset.sample.write_text("id,z\n80,1\n")
    (problem,) = check_dataset(dataset).problems
    assert problem.startswith("the sample submission cannot be graded: ")


@pytest.mark.parametrize(("suffix", "write"), [(".zip", write_zip), (".7z", write_7z)])
def test_a_sample_may_be_packed(
    tmp_path: Path, suffix: str, write: Callable[[Path, dict[str, Path]], None]
) -> None:
    dataset = _dataset(tmp_path)
    packed = dataset.sample.with_name(dataset.sample.name + suffix)
    write(packed, {"sample.csv": dataset.sample})
    facts = dataset.competition.folder / "competition.toml"
    facts.write_text(facts.read_text().replace(f'"{dataset.sample.name}"', f'"{packed.name}"'))
    renamed = Dataset(read_competition(facts.parent), dataset.public, dataset.private)
    assert renamed.sample == packed
    assert check_dataset(renamed) == check_dataset(dataset)


def test_answers_that_are_no_submission_are_noted_not_blamed(tmp_path: Path) -> None:
    dataset = _dataset(tmp_path)
    folder = dataset.competition.folder
    text = (folder / "competition.toml").read_text()
    (folder / "competition.toml").write_text(text.replace('answers = "test.csv"', 'answers = "d"'))
    (folder / "grade.py").write_text(
        "import pandas as pd\n"
        "def read_answers(private):\n"
        "    return pd.read_csv(private / 'test.csv')\n"
        "def grade(submission, answers):\n"
        "    return float((submission['y'] - answers['y']).abs().mean())\n"
    )
    (dataset.private / "d").mkdir()
    text = (folder / "competition.toml").read_text().replace('"rmse"', '"own"\ndirection = "lower"')
    (folder / "competition.toml").write_text(text)
    verdict = check_dataset(Dataset(read_competition(folder), dataset.public, dataset.private))
    assert verdict.problems == ()
    assert verdict.gold is None
    assert verdict.notes == (
        "no best submission is known, the answers are none: its answers are not one file",
    )


def test_the_command_checks_what_is_prepared(tmp_path: Path) -> None:
    _dataset(tmp_path)
    where = ("--competitions", tmp_path / "competitions", "--data-dir", tmp_path / "store")
    done = cli("self-check", *where)
    assert (done.returncode, done.stderr) == (0, "")
    assert " ".join(done.stdout.splitlines()[1].split()) == "tiny 8.96856 0 ok"
    assert done.stdout.splitlines()[-1].startswith("1 datasets checked, 0 with a problem, ")


def test_the_command_fails_where_something_is_wrong(tmp_path: Path) -> None:
    _dataset(tmp_path, gold=-1)
    where = ("--competitions", tmp_path / "competitions", "--data-dir", tmp_path / "store")
    done = cli("self-check", *where)
    assert done.returncode == 1
    assert "FAILED\n    the best submission scores 0, which earns no gold (-1)" in done.stdout


def test_an_empty_store_is_said(tmp_path: Path) -> None:
    message = complaint("self-check", "--data-dir", tmp_path / "none")
    assert "is prepared in" in message
    assert "run pytest-mlebench prepare" in message
