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
    (missing,) = (result for result in report.results if result.status == "missing")
    assert (missing.competition, missing.seed) == (lost["competition_id"], 2)


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


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_several_files_may_hold_several_seeds_each(tmp_path: Path, order: tuple[int, int]) -> None:
    files = [tmp_path / f"{number}.json" for number in order]
    both = _data()
    both["competition_reports"] += _data(1)["competition_reports"]
    for path, data in zip(files, (both, _data(2)), strict=True):
        path.write_text(json.dumps(data))
    report = Report.from_reference(files)
    assert report.rates == Report.from_reference(REAL_REPORTS).rates
    assert report.disclosure.notes == (
        "read 2 grading reports as 3 seeds of 75 competitions: the n-th entry of a competition is "
        "its n-th seed",
    )


def test_files_that_each_hold_a_part_of_the_competitions_are_one_seed(tmp_path: Path) -> None:
    data = _data(1)
    entries = data["competition_reports"]
    files = [tmp_path / name for name in ("a.json", "b.json")]
    for path, part in zip(files, (entries[:40], entries[40:]), strict=True):
        path.write_text(json.dumps(data | {"competition_reports": part}))
    report = Report.from_reference(files)
    assert report.seeds == (0,)
    assert {row.name: row.rates["any_medal"].text() for row in report.rates}["all"] == "45.33"


def test_a_list_of_entries_and_a_single_entry_are_read(tmp_path: Path) -> None:
    entries = _data()["competition_reports"]
    path = tmp_path / "list.json"
    path.write_text(json.dumps(entries))
    assert Report.read(path).rates == Report.read(REAL_REPORTS[0]).rates
    path.write_text(json.dumps(entries[4]))
    (result,) = Report.read(path).results
    assert result.competition == entries[4]["competition_id"]
    path.write_text("[1, 2]")
    with pytest.raises(ConfigError, match=r"list\.json: not a report: must be an object"):
        Report.read(path)


def test_a_threshold_that_a_file_lacks_is_our_own_and_that_is_reported(tmp_path: Path) -> None:
    data = _data()
    medal = next(entry for entry in data["competition_reports"] if entry["gold_medal"])
    del medal["gold_threshold"], medal["is_lower_better"]
    medal["median_threshold"] = None
    path = tmp_path / "a.json"
    path.write_text(json.dumps(data))
    report = Report.read(path)
    assert report.rates == Report.read(REAL_REPORTS[0]).rates
    assert report.disclosure.notes[1] == (
        "thresholds that the files lack were taken from our own leaderboards: "
        f"{medal['competition_id']}"
    )
    medal["competition_id"] = "unheard-of"
    path.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match=r"gold_threshold is missing"):
        Report.read(path)


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
    with pytest.raises(ConfigError, match=r"ours\.json: several files are read as results"):
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
