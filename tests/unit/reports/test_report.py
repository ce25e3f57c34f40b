"""Reports: written, read back, and broken in every way that a file can be."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reporting import REAL_REPORTS, errored, failed, graded

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.grade import Snapshot
from pytest_mlebench.host.hardware import host_hardware
from pytest_mlebench.medals import Medal
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import ItemKey, Result, complete

DISCLOSURE = Disclosure(
    agent="mine",
    agent_version="1.2",
    image="sha256:0123",
    sandbox="docker",
    network="none",
    limits={"time": "12h"},
    deviations={"time": ("12h", "24h")},
    hardware={"cpus": "2"},
    splits=("low",),
    seeds=2,
    require="bronze",
    plugin_version="0.1.0",
    data={"leaf-classification": "checksums"},
    notes=("a note",),
    extra={"cost": "3 EUR"},
)


@pytest.fixture
def report() -> Report:
    results = [
        graded("leaf-classification", 0, Medal.GOLD),
        failed("leaf-classification", 1, "column 'species' is missing | <b>=1+1</b>"),
        errored("AI4Code", 0),
    ]
    expected = [ItemKey(i, seed) for i in ("leaf-classification", "AI4Code") for seed in (0, 1)]
    return Report.of(results, registry=Registry(), disclosure=DISCLOSURE, expected=expected)


def test_a_result_crosses_processes_as_json() -> None:
    for result in (graded("a", 3, Medal.SILVER), failed("b"), errored("c")):
        assert Result.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def test_the_last_result_counts_unless_it_is_missing() -> None:
    missing = Result("a", 0, "missing")
    first, second = errored("a"), graded("a")
    assert complete([first, second, missing], [ItemKey("a", 0)]) == (second,)


def test_an_expected_run_without_a_result_is_missing() -> None:
    (result,) = complete([], [ItemKey("a", 1)])
    assert (result.key, result.status) == (ItemKey("a", 1), "missing")
    assert result.problem == "never ran"


def test_json_comes_back_as_it_was(report: Report, tmp_path: Path) -> None:
    report.write(tmp_path / "new folder" / "r.json")
    assert Report.read(tmp_path / "new folder" / "r.json") == report


def test_json_says_what_a_reader_needs(report: Report, tmp_path: Path) -> None:
    report.write(tmp_path / "r.json")
    data = json.loads((tmp_path / "r.json").read_text())
    assert (data["format"], data["schema"]) == ("pytest-mlebench report", 1)
    assert data["disclosure"]["deviations"] == {"time": ["12h", "24h"]}
    assert (data["disclosure"]["agent_hours"], data["disclosure"]["format_checks"]) == (1.0, 2)
    low = next(row for row in data["rates"] if row["split"] == "low")
    assert low["any_medal"]["per_seed"] == [100, 0]
    assert (low["competitions"], low["competitions_in_split"]) == (1, 22)
    selected = data["rates"][-1]
    assert (selected["runs"], selected["errors"], selected["missing"]) == (4, 1, 1)


def test_rates_in_the_file_are_not_believed(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    report.write(path)
    data = json.loads(path.read_text())
    for row in data["rates"]:
        row["any_medal"]["mean"] = 100
    path.write_text(json.dumps(data))
    assert Report.read(path).rates == report.rates


def test_csv_has_a_row_for_each_competition_and_seed(report: Report, tmp_path: Path) -> None:
    report.write(tmp_path / "r.csv")
    with (tmp_path / "r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["competition"], row["seed"], row["outcome"]) for row in rows] == [
        ("leaf-classification", "0", "graded"),
        ("leaf-classification", "1", "failed"),
        ("AI4Code", "0", "error"),
        ("AI4Code", "1", "missing"),
    ]
    assert (rows[0]["score"], rows[0]["medal"], rows[0]["split"]) == ("0.95", "gold", "low")
    assert rows[0]["above_median"] == "true"


def test_csv_keeps_formulas_out_of_spreadsheets(tmp_path: Path) -> None:
    result = failed("a", problem="=HYPERLINK(1)")
    Report((result,)).write(tmp_path / "r.csv")
    with (tmp_path / "r.csv").open(newline="") as file:
        assert next(csv.DictReader(file))["problem"] == "'=HYPERLINK(1)"


def test_markdown_shows_rates_competitions_problems_and_disclosure(
    report: Report, tmp_path: Path
) -> None:
    report.write(tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text()
    assert text.startswith("# MLE-bench report: mine\n")
    assert "| low | 1 of 22 | 2 | 50.00 ± 50.00 |" in text
    assert "| leaf-classification | low | 0 | graded | 0.95 | gold | 95.0 |  |" in text
    assert "- not standard: time 12h instead of 24h" in text
    assert "- format checks: 2" in text
    assert "column 'species' is missing \\| \\<b\\>=1+1\\</b\\>" in text
    assert "Over time" not in text


def test_markdown_tells_when_a_submission_was_first_worth_something(tmp_path: Path) -> None:
    kept = (
        Snapshot(1800, "a", 9, problem="no rows"),
        Snapshot(3600, "b", 9, 0.5, Medal.NONE, False, 40.0),
        Snapshot(5400, "c", 9, 0.95, Medal.GOLD, True, 99.0),
        Snapshot(7200, "d", 9, 0.75, Medal.BRONZE, True, 75.0),
    )
    results = (replace(graded("leaf-classification"), snapshots=kept), failed("AI4Code"))
    Report(results).write(tmp_path / "r.md")
    section = (tmp_path / "r.md").read_text().partition("## Over time\n\n")[2].partition("\n\n")[0]
    assert section.splitlines()[2:] == [
        "| leaf-classification seed 0 | 4 | 1h | gold after 1h30m | 99.0 after 1h30m |"
    ]


def test_suffix_decides_and_an_unknown_one_is_refused(report: Report, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"must end in .*\.json .*\.md.*, given: .*r\.xlsx"):
        report.write(tmp_path / "r.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_cannot_be_written_says_so(report: Report, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot write the report .*file/r\.json: "):
        report.write(tmp_path / "file" / "r.json")


def _write(path: Path, change: Any, report: Report) -> Path:
    report.write(path)
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    return path


def _set(*keys: Any, value: Any) -> Any:
    def change(data: Any) -> None:
        for key in keys[:-1]:
            data = data[key]
        data[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("schema", value=99), r"has schema 99, this version reads schema 1"),
        (_set("format", value="x"), r"neither a report of pytest-mlebench nor a grading report"),
        (_set("results", value={}), r"results must be a list, given: dict"),
        (_set("results", 0, value=3), r"results\[0\]: must be an object, given: int"),
        (_set("results", 0, "seed", value="0"), r"results\[0\]: seed must be a number, given: '0'"),
        (_set("results", 0, "seed", value=0.5), r"seed must be a whole number, zero or more"),
        (_set("results", 0, "outcome", value="ok"), r"outcome must be one of graded, failed"),
        (
            _set("results", 0, "outcome", value="failed"),
            r"is 'failed', which the grade contradicts",
        ),
        (
            _set("results", 0, "grade", "score", value=None),
            r"medal is 'gold', but there is no score",
        ),
        (
            _set("results", 0, "grade", "gold", value="x"),
            r"grade: gold must be a number, given: 'x'",
        ),
        (_set("results", 1, "seed", value=0), r"leaf-classification has two results for seed 0"),
        (_set("disclosure", value=[]), r"disclosure: must be an object, given: list"),
        (_set("disclosure", "deviations", "time", value=["1h"]), r"must be \[value, standard\]"),
        (_set("membership", "splits", "low", value="x"), r"low must be a list of strings"),
        (_set("created", value=None), r"created is missing"),
    ],
)
def test_a_damaged_report_is_refused_with_the_place(
    report: Report, tmp_path: Path, change: Any, message: str
) -> None:
    path = _write(tmp_path / "r.json", change, report)
    with pytest.raises(ConfigError, match=message) as caught:
        Report.read(path)
    assert str(path) in str(caught.value)


def test_keys_of_later_versions_are_passed_over(report: Report, tmp_path: Path) -> None:
    def change(data: Any) -> None:
        data["new"] = data["results"][0]["new"] = data["disclosure"]["new"] = 1

    assert Report.read(_write(tmp_path / "r.json", change, report)) == report


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"not valid JSON"),
        (b"{", r"not valid JSON"),
        (b"\xff\xfe", r"not valid JSON"),
        (b"[" * 100_000, r"not valid JSON"),
        (b"[1]", r"not a report: must be an object, given: list"),
        (b"{}", r"neither a report of pytest-mlebench nor a grading report"),
    ],
)
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        Report.read(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the report .*r\.json: No such file"):
        Report.read(tmp_path / "r.json")
    with pytest.raises(ConfigError, match=r"neither the folder of a run .*nor a folder of grading"):
        Report.load([tmp_path])


def test_only_some_competitions_adds_what_is_missing_of_them(report: Report) -> None:
    part = report.only(["leaf-classification", "mlsp-2013-birds"], Registry())
    assert [(r.competition, r.seed, r.status) for r in part.results] == [
        ("leaf-classification", 0, "graded"),
        ("leaf-classification", 1, "failed"),
        ("mlsp-2013-birds", 0, "missing"),
        ("mlsp-2013-birds", 1, "missing"),
    ]
    assert part.created == report.created


def test_hardware_is_told() -> None:
    assert int(host_hardware()["cpus"]) >= 1
    assert replace(DISCLOSURE, hardware=host_hardware()).lines()


def test_the_report_is_light_to_import() -> None:
    code = (
        "import sys; from pytest_mlebench import Report; import pytest_mlebench.reports.summary; "
        f"Report.load({[str(path) for path in REAL_REPORTS]}); "
        "heavy = {'numpy', 'pandas', 'scipy', 'sklearn', 'rich', 'docker', 'requests'}; "
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
