"""The folder of a run as a report."""

from __future__ import annotations

from pathlib import Path

import pytest
from reporting import failed, graded

from pytest_mlebench.attempts.plan import read_plan, write_plan
from pytest_mlebench.attempts.record import Phase, Run
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.grade import Grade
from pytest_mlebench.medals import Medal
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.report import Report

PLAN = [(i, seed) for i in ("leaf-classification", "AI4Code") for seed in (0, 1)]


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    write_plan(tmp_path / "run", PLAN, Disclosure(agent="mine", splits=("my-split",), seeds=2))
    return tmp_path / "run"


def _attempt(
    folder: Path, key: tuple[str, int], number: int, phase: Phase, grade: Grade | None = None
) -> None:
    run = Run(
        folder=folder / key[0] / f"seed{key[1]}" / f"attempt{number}",
        competition=key[0],
        seed=key[1],
        attempt=number,
        agent="mine",
        grade=grade,
        error="the engine is gone" if phase == "error" else None,
        outcome={"seconds": 7.5, "format_checks": 3, "image": "sha256:1"},
    )
    run.enter(phase)


def test_every_outcome_is_told(run_folder: Path) -> None:
    leaf = "leaf-classification"
    _attempt(run_folder, (leaf, 0), 1, "graded", graded(leaf).grade)
    _attempt(run_folder, (leaf, 1), 1, "graded", failed(leaf).grade)
    _attempt(run_folder, ("AI4Code", 0), 1, "error")
    _attempt(run_folder, ("AI4Code", 1), 1, "running")
    report = Report.from_run(run_folder)
    assert [(*result.key, result.outcome) for result in report.results] == [
        ("leaf-classification", 0, "graded"),
        ("leaf-classification", 1, "failed"),
        ("AI4Code", 0, "error"),
        ("AI4Code", 1, "missing"),
    ]
    assert report.results[3].problem == "interrupted: the attempt was left 'running'"
    assert report.results[0].run == str(run_folder / "leaf-classification/seed0/attempt1")
    assert (report.format_checks, report.results[0].agent_seconds) == (12, 7.5)
    assert (report.disclosure.agent, report.disclosure.image) == ("mine", "sha256:1")


def test_the_newest_graded_attempt_wins(run_folder: Path) -> None:
    name = "leaf-classification"
    for number, medal in ((2, Medal.SILVER), (10, Medal.GOLD)):
        _attempt(run_folder, (name, 0), number, "graded", graded(name, medal=medal).grade)
    _attempt(run_folder, (name, 0), 11, "error")
    assert Report.from_run(run_folder).results[0].medal is Medal.GOLD


def test_what_never_began_is_missing(run_folder: Path) -> None:
    report = Report.load([run_folder])
    assert [result.outcome for result in report.results] == ["missing"] * 4
    assert report.rates[0].rates["any_medal"].mean == 0


def test_a_resumed_run_keeps_what_was_expected(run_folder: Path) -> None:
    write_plan(run_folder, [("AI4Code", 1), ("AI4Code", 2)], Disclosure(agent="mine"))
    assert read_plan(run_folder)[0] == (*PLAN, ("AI4Code", 2))


def test_a_half_written_record_is_as_if_it_were_not_there(run_folder: Path) -> None:
    _attempt(run_folder, ("AI4Code", 0), 1, "graded", graded("AI4Code").grade)
    record = run_folder / "AI4Code/seed0/attempt1/record.json"
    record.write_text(record.read_text()[:-40])
    assert Report.from_run(run_folder).results[2].outcome == "missing"


def test_a_damaged_record_is_named(run_folder: Path) -> None:
    _attempt(run_folder, ("AI4Code", 0), 1, "graded", graded("AI4Code").grade)
    record = run_folder / "AI4Code/seed0/attempt1/record.json"
    record.write_text(record.read_text().replace('"medal"', '"metal"'))
    with pytest.raises(ConfigError, match=r"AI4Code/seed0: has a record that cannot be read: Key"):
        Report.from_run(run_folder)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("{}", r"run\.json: has schema None, this version reads schema 1"),
        ('{"schema": 1}', r"run\.json: expected must be a list, given: NoneType"),
        ('{"schema": 1, "expected": [["a"]]}', r"must list \[competition, seed\], given: \['a'\]"),
        ('{"schema": 1, "expected": []}', r"run\.json: disclosure: must be an object"),
        ("[", r"run\.json: not valid JSON"),
    ],
)
def test_a_damaged_plan_is_refused(tmp_path: Path, plan: str, message: str) -> None:
    (tmp_path / "run.json").write_text(plan)
    with pytest.raises(ConfigError, match=message):
        Report.from_run(tmp_path)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"not the folder of a run \(it has no run\.json\)"):
        Report.from_run(tmp_path)
