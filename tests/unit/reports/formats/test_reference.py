"""Grading reports in the reference implementation's format, both ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reporting import REAL_REPORTS, errored, failed, graded

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.medals import Medal
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import ItemKey


def _data(number: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(REAL_REPORTS[number].read_text())
    return found


def test_writing_gives_back_what_was_read() -> None:
    report = Report.from_reference(REAL_REPORTS)
    for seed in range(3):
        theirs, ours = _data(seed), report.to_reference(seed)
        # in the real files this total is that of all runs, whether or not they have a submission
        exist = sum(entry["submission_exists"] for entry in theirs["competition_reports"])
        theirs["total_runs_with_submissions"] = exist
        for entry in theirs["competition_reports"]:
            path = entry["submission_path"]
            entry |= {
                "created_at": report.created,
                "submission_path": {"None": None}.get(path, path),
            }
        assert ours == theirs


def test_one_file_is_one_seed_and_gives_no_standard_error() -> None:
    report = Report.read(REAL_REPORTS[0])
    assert report.seeds == (0,)
    assert {row.name: row.rates["any_medal"].text() for row in report.rates} == {
        "low": "63.64",
        "medium": "34.21",
        "high": "33.33",
        "all": "42.67",
    }


def test_a_competition_that_one_seed_lacks_is_missing_not_dropped(tmp_path: Path) -> None:
    data = _data()
    lost = data["competition_reports"].pop(2)
    assert lost["gold_medal"]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(data))
    report = Report.from_reference([path, *REAL_REPORTS[1:]])
    row = report.rates[0]
    assert (row.name, row.missing, row.runs) == ("low", 1, 66)
    assert row.rates["any_medal"].values[0] == pytest.approx(100 * 13 / 22)


def test_known_competitions_get_their_percentile() -> None:
    report = Report.from_reference(REAL_REPORTS)
    found = {result.competition: result.grade for result in report.results if result.valid}
    spooky = found["spooky-author-identification"]
    assert spooky is not None
    assert spooky.teams == 1242
    assert spooky.percentile is not None
    assert 89 < spooky.percentile < 100


def test_in_a_single_file_the_second_entry_of_a_competition_is_its_second_seed(
    tmp_path: Path,
) -> None:
    data = _data()
    data["competition_reports"] += _data(1)["competition_reports"]
    path = tmp_path / "both.json"
    path.write_text(json.dumps(data))
    assert Report.read(path).rates == Report.from_reference(REAL_REPORTS[:2]).rates
    with pytest.raises(ConfigError, match=r"occurs twice; of several files each must hold one"):
        Report.from_reference([path, REAL_REPORTS[2]])


def test_errors_and_missing_runs_survive_the_way_there_and_back(tmp_path: Path) -> None:
    results = [graded("a", 0, Medal.BRONZE), failed("b"), errored("c")]
    report = Report.of(results, registry=Registry(), expected=[ItemKey(i, 0) for i in "abcd"])
    path = tmp_path / "grading_report.json"
    path.write_text(json.dumps(report.to_reference(0)))
    back = Report.read(path)
    assert [result.status for result in back.results] == ["graded", "failed", "missing", "missing"]
    assert back.rates[0].rates["any_medal"].mean == 25


def test_totals_count_what_the_entries_say() -> None:
    results = [graded("a", 0, Medal.GOLD), graded("b"), failed("c")]
    totals = Report(tuple(results)).to_reference(0)
    del totals["competition_reports"]
    assert totals == {
        "total_runs": 3,
        "total_runs_with_submissions": 2,
        "total_valid_submissions": 2,
        "total_medals": 1,
        "total_gold_medals": 1,
        "total_silver_medals": 0,
        "total_bronze_medals": 0,
        "total_above_median": 1,
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"competition_id": None}, r"competition_reports\[2\]: competition_id is missing"),
        ({"score": "1.0"}, r"score must be a number, given: '1.0'"),
        ({"score": None}, r"score is missing, though valid_submission is true"),
        ({"gold_threshold": None}, r"gold_threshold is missing"),
        ({"silver_medal": True}, r"claims gold and silver, but the score 1.0 earns gold"),
        ({"gold_medal": False}, r"claims no medal, but the score 1.0 earns gold"),
        ({"score": 0.5, "above_median": False}, r"claims gold, but the score 0.5 earns no medal"),
        ({"any_medal": False}, r"any_medal is False, which the score 1.0 contradicts"),
        ({"above_median": False}, r"above_median is False, which the score 1.0 contradicts"),
        ({"valid_submission": False}, r"claims gold, but the score None earns no medal"),
        ({"is_lower_better": "no"}, r"is_lower_better must be true or false, given: 'no'"),
    ],
)
def test_an_entry_that_contradicts_itself_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    data = _data()
    assert data["competition_reports"][2]["gold_medal"]
    data["competition_reports"][2] |= changes
    path = tmp_path / "a.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match=message):
        Report.read(path)


def test_a_score_that_is_not_a_number_is_no_score(tmp_path: Path) -> None:
    data = _data()
    data["competition_reports"][0]["score"] = float("nan")
    path = tmp_path / "a.json"
    path.write_text(json.dumps(data))
    first = Report.read(path).results[0]
    assert (first.status, first.problem) == ("failed", "the score is nan")


@pytest.mark.parametrize(
    ("entries", "message"),
    [(None, r"must be a list"), ([], r"has no competition_reports"), ([1], r"must be an object")],
)
def test_a_grading_report_without_entries_is_refused(
    tmp_path: Path, entries: Any, message: str
) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"competition_reports": entries}))
    with pytest.raises(ConfigError, match=message):
        Report.read(path)


def test_several_files_must_all_be_grading_reports(tmp_path: Path) -> None:
    Report.from_reference(REAL_REPORTS).write(tmp_path / "ours.json")
    with pytest.raises(ConfigError, match=r"ours\.json: several files are read as the seeds"):
        Report.load([REAL_REPORTS[0], tmp_path / "ours.json"])


def test_a_grade_of_an_unknown_competition_explains_itself(tmp_path: Path) -> None:
    data = _data()
    first = data["competition_reports"][0] | {"competition_id": "unheard-of"}
    data["competition_reports"] = [first]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(data))
    grade = Report.read(path).results[0].grade
    assert grade is not None
    assert grade.explain()[-1] == "the place among the teams is not known, 0.046 short of bronze"
