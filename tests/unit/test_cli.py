"""The command line, as a user runs it: in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import cli, complaint
from reporting import REAL_REPORTS, graded, write_competition, write_submission

from pytest_mlebench.medals import Medal
from pytest_mlebench.reports.report import Report


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Return a folder with one competition, ``tiny``."""
    return write_competition(tmp_path / "competitions")


@pytest.mark.parametrize("given", [REAL_REPORTS, [REAL_REPORTS[0].parent]])
def test_report_gives_the_published_numbers(given: list[Path]) -> None:
    done = cli("report", *given)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("notes: read 3 grading reports as 3 seeds of 75 competitions")
    assert lines[3].split() == ["low", "medium", "high", "all"]
    any_medal = next(line for line in lines if line.startswith("any medal"))
    published = "any medal 62.12 ± 1.52 36.84 ± 1.52 33.33 ± 0.00 43.56 ± 0.89"
    assert " ".join(any_medal.split()) == published
    assert max(map(len, lines)) <= 80


def test_report_on_an_ascii_terminal() -> None:
    done = cli("report", *REAL_REPORTS, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "62.12 +/- 1.52" in done.stdout


def test_report_writes_every_format_and_reads_its_own(tmp_path: Path) -> None:
    outputs = [tmp_path / f"out{suffix}" for suffix in (".json", ".csv", ".md")]
    options = [option for path in outputs for option in ("-o", str(path))]
    first = cli("report", *REAL_REPORTS, *options)
    assert first.returncode == 0
    assert all(path.is_file() for path in outputs)
    again = cli("report", outputs[0])
    assert first.stdout.startswith(again.stdout)


def test_report_of_a_split_counts_what_the_files_lack(tmp_path: Path) -> None:
    data = json.loads(REAL_REPORTS[0].read_text())
    kept = [e for e in data["competition_reports"] if e["competition_id"] == "leaf-classification"]
    (tmp_path / "r.json").write_text(json.dumps({"competition_reports": kept}))
    done = cli("report", tmp_path / "r.json", "--split", "lite")
    assert "21 of 22 runs are missing (21 not run to the end)" in done.stdout


def test_report_gates(tmp_path: Path) -> None:
    done = cli("report", *REAL_REPORTS, "--fail-under", "low:62", "--fail-under", "all:43.6")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == (
        "any-medal rate of all is 43.56 %, below the bar of 43.6 % (--fail-under=all:43.6)"
    )
    assert cli("report", *REAL_REPORTS, "--fail-under", "low:62").returncode == 0


def test_bad_reports_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    assert "broken.json: not valid JSON" in complaint("report", tmp_path / "broken.json")
    assert "No such file" in complaint("report", tmp_path / "none.json")
    (tmp_path / "empty").mkdir()
    assert "neither the folder of a run" in complaint("report", tmp_path / "empty")
    assert "--output must end in .json" in complaint("report", *REAL_REPORTS, "-o", "x.pdf")
    assert "'lwo', did you mean 'low'" in complaint("report", *REAL_REPORTS, "--split", "lwo")
    assert "did you mean 'low'" in complaint("report", *REAL_REPORTS, "--fail-under", "lwo:1")


def test_compare_reports_and_fails_on_a_regression_if_asked(tmp_path: Path) -> None:
    for name, medal in (("a.json", Medal.GOLD), ("b.json", Medal.NONE)):
        Report(tuple(graded(letter, medal=medal) for letter in "abcdef")).write(tmp_path / name)
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    done = cli("compare", a, b)
    assert (done.returncode, done.stderr) == (0, "")
    assert "any-medal rate fell from 100.00 % to 0.00 % on 6 competitions" in done.stdout
    assert cli("compare", a, b, "--fail-on-regression").returncode == 1
    assert cli("compare", b, a, "--fail-on-regression").returncode == 0
    assert "no competition in common" in complaint("compare", a, REAL_REPORTS[0])
    done = cli("compare", REAL_REPORTS[0], REAL_REPORTS[0].parent)
    assert f"A: {REAL_REPORTS[0]}\n  read 1 grading report as 1 seed of 75" in done.stdout
    assert "\n  read 3 grading reports as 3 seeds of 75" in done.stdout


def test_list_tells_what_is_known(mine: Path) -> None:
    done = cli("list", "tiny", "--competitions", mine)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "tiny",
        "    A test",
        "    custom, Tabular, 1.9MB",
        "    rmse, lower is better",
        "    200 teams: gold 1, silver 2, bronze 3, median 5",
        "    known issue (leak): the answers are the ids, divided by ten, as anybody can",
        "      see who looks at the training data",
        "",
        "1 competition",
    ]


def test_list_as_json(mine: Path) -> None:
    done = cli("list", "--competitions", mine, "--json")
    found = {each["id"]: each for each in json.loads(done.stdout)}
    assert {"tiny", "spooky-author-identification"} <= found.keys()
    assert found["tiny"]["thresholds"] == {"gold": 1, "silver": 2, "bronze": 3, "median": 5}
    assert found["tiny"]["direction"] == "lower"
    assert found["tiny"]["known_issues"][0]["kind"] == "leak"
    assert found["tiny"]["known_issues"][0]["certain"] is True


def test_list_says_what_is_only_suspected() -> None:
    done = cli("list", "cassava-leaf-disease-classification")
    assert "    known issue (suspected leak): test TFRecords are copied unchanged" in done.stdout


def test_list_shows_everything_that_is_wrong_with_a_competition(mine: Path) -> None:
    path = mine / "tiny" / "competition.toml"
    path.write_text(path.read_text().replace("teams", "teems").replace("targets", "target"))
    done = cli("list", "tiny", "--competitions", mine)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.splitlines() == [
        f"pytest-mlebench: error: {path}: 2 problems:",
        "  submission: targets is missing, did you mean 'target'?",
        "  leaderboard: teams is missing, did you mean 'teems'?",
        "see https://pytest-mlebench.github.io/pytest-mlebench/competitions/",
    ]


def test_list_of_an_unknown_name_suggests_one() -> None:
    message = complaint("list", "spooky-author-identificatoin")
    assert message.startswith(
        "unknown competition 'spooky-author-identificatoin', "
        "did you mean 'spooky-author-identification'"
    )
    assert "unknown split 'lwo', did you mean 'low'" in complaint("list", "--split", "lwo")


def _lines(path: Path, *submissions: Path) -> Path:
    lines = (
        json.dumps({"competition_id": "tiny", "submission_path": str(each), "logs": "x"})
        for each in submissions
    )
    path.write_text("\n".join(lines) + "\n\n")
    return path


def test_grade_writes_both_reports(mine: Path, tmp_path: Path) -> None:
    good = write_submission(tmp_path / "good.csv", 0.5)
    poor = write_submission(tmp_path / "poor.csv", 4)
    file = _lines(tmp_path / "f.jsonl", good, poor, tmp_path / "none.csv")
    where = ("--competitions", mine, "--data-dir", tmp_path / "store")
    done = cli("grade", file, *where, "--output-dir", tmp_path / "out")
    assert (done.returncode, done.stderr) == (1, ""), "one of the files does not exist"
    assert "G.F" in done.stdout
    assert f"1 of 3 files do not exist: {tmp_path / 'none.csv'}" in done.stdout
    theirs = next((tmp_path / "out").glob("*_grading_report.json"))
    data = json.loads(theirs.read_text())
    assert (data["total_runs"], data["total_gold_medals"], data["total_above_median"]) == (3, 1, 2)
    assert [entry["score"] for entry in data["competition_reports"]] == [0.5, 4, None]
    assert data["competition_reports"][2]["submission_exists"] is False
    ours = Report.read(next((tmp_path / "out").glob("*[0-9]_report.json")))
    assert [result.status for result in ours.results] == ["graded", "graded", "failed"]
    assert ours.results[2].problem == "there is no none.csv"
    assert ours.membership.leaky == {"tiny"}
    assert Report.read(theirs).rates[0].rates == ours.rates[0].rates


def test_no_file_keeps_grade_from_the_next_ones(mine: Path, tmp_path: Path) -> None:
    good = write_submission(tmp_path / "good.csv", 0.5)
    long = tmp_path / "long.csv"
    long.write_text(good.read_text().rpartition(",")[0] + "," + "9" * 4000 + "\n")
    odd = [tmp_path / "no\0path", tmp_path / ("x" * 300), tmp_path]
    file = _lines(tmp_path / "f.jsonl", long, *odd, good)
    where = ("--competitions", mine, "--data-dir", tmp_path / "store", "--output-dir", tmp_path)
    done = cli("grade", file, *where)
    assert (done.returncode, done.stderr) == (1, "")
    assert "FFFFG" in done.stdout
    assert "must hold a number of 64 bits, given: '9999" in done.stdout


def test_grade_takes_null_for_no_submission(mine: Path, tmp_path: Path) -> None:
    file = _lines(tmp_path / "f.jsonl", write_submission(tmp_path / "good.csv", 0.5))
    with file.open("a") as more:
        more.write(json.dumps({"competition_id": "tiny", "submission_path": None}))
    where = ("--competitions", mine, "--data-dir", tmp_path / "store", "--output-dir", tmp_path)
    done = cli("grade", file, *where)
    assert (done.returncode, done.stderr) == (0, "")
    assert "GF" in done.stdout
    assert "tiny seed1: no submission" in done.stdout


def test_grade_takes_a_run_group_of_the_reference(mine: Path, tmp_path: Path) -> None:
    group = tmp_path / "runs" / "2026_run-group_aide"
    names = ["tiny_0a", "tiny_0b", "tiny_0c"]
    for name in names:
        (group / name / "submission").mkdir(parents=True)
    write_submission(group / names[0] / "submission" / "submission.csv", 0.5)
    write_submission(group / names[2] / "submission" / "submission.csv", 4)
    runs = {name: {"success": True} for name in names}
    (group / "metadata.json").write_text(json.dumps({"run_group": group.name, "runs": runs}))
    assert "not graded yet, use pytest-mlebench grade" in complaint("report", group)
    where = ("--competitions", mine, "--data-dir", tmp_path / "store", "--output-dir", group)
    done = cli("grade", group, *where)
    assert (done.returncode, done.stderr) == (0, "")
    assert "GF." in done.stdout
    assert "GF." in cli("report", group, "--competitions", mine).stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "not the folder of a run group (it has no metadata.json)"),
        ("{", "not valid JSON"),
        ("{}", "runs is missing"),
        ('{"runs": {}}', "names no run"),
        ('{"runs": {"tinny_0a": {}}}', "'tinny', did you mean 'tiny'"),
        ('{"runs": {"../tiny_0a": {}}}', "must be the name of a folder beside metadata.json"),
    ],
)
def test_grade_says_what_is_wrong_with_a_run_group(
    mine: Path, tmp_path: Path, content: str | None, message: str
) -> None:
    group = tmp_path / "group"
    group.mkdir()
    if content is not None:
        (group / "metadata.json").write_text(content)
    assert message in complaint("grade", group, "--competitions", mine)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "names no submission"),
        ("{", "line 1: not valid JSON"),
        ("\n[1]", "line 2: must be an object, given: list"),
        ('{"submission_path": "x"}', "line 1: competition_id is missing"),
        ('{"competition_id": "tiny"}', "line 1: submission_path is missing"),
        ('{"competition_id": "tinny", "submission_path": "x"}', "line 1: 'tinny', did you mean"),
        ("\udcff", "not UTF-8 text"),
    ],
)
def test_grade_names_the_line_that_is_wrong(
    mine: Path, tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text(content, errors="surrogateescape")
    assert message in complaint("grade", path, "--competitions", mine)


def test_grade_into_a_folder_that_cannot_be_written(mine: Path, tmp_path: Path) -> None:
    file = _lines(tmp_path / "f.jsonl", write_submission(tmp_path / "s.csv"))
    where = ("--competitions", mine, "--data-dir", tmp_path / "store")
    message = complaint("grade", file, *where, "--output-dir", tmp_path / "s.csv")
    assert message.startswith(f"cannot write to --output-dir {tmp_path / 's.csv'}: ")


def test_grade_without_data_names_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    line = {"competition_id": "spooky-author-identification", "submission_path": "x.csv"}
    path.write_text(json.dumps(line))
    message = complaint("grade", path, "--data-dir", tmp_path / "store")
    assert "not prepared in" in message
    assert "pytest-mlebench prepare" in message


def test_grade_sample_explains_the_grade(mine: Path, tmp_path: Path) -> None:
    where = ("--competitions", mine, "--data-dir", tmp_path / "store")
    done = cli("grade-sample", write_submission(tmp_path / "s.csv", 1.5), "tiny", *where)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "tiny: score 1.5 (lower is better), silver"
    as_json = cli("grade-sample", tmp_path / "s.csv", "tiny", *where, "--json")
    assert json.loads(as_json.stdout)["medal"] == "silver"


def test_grade_sample_of_a_bad_file_says_why_and_fails(mine: Path, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("id,z\n80,1\n")
    where = ("--competitions", mine, "--data-dir", tmp_path / "store")
    done = cli("grade-sample", tmp_path / "s.csv", "tiny", *where)
    assert done.returncode == 1
    assert done.stdout.startswith("tiny: column 'y' is missing")
    assert done.stderr == ""


def test_usage_errors_are_short() -> None:
    for arguments in ((), ("lst",), ("report",), ("grade-sample", "x")):
        done = cli(*arguments)
        assert done.returncode == 4
        assert done.stderr.splitlines()[-1].startswith("pytest-mlebench")
        assert "Traceback" not in done.stderr


def test_help_explains_each_command() -> None:
    overview = cli("--help").stdout
    for command in ("list", "report", "compare", "grade", "grade-sample", "self-check"):
        assert command in overview
        done = cli(command, "--help")
        assert done.returncode == 0
        assert done.stdout.startswith(f"usage: pytest-mlebench {command}")
    assert cli("--version").stdout.startswith("pytest-mlebench 0.")


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    done = subprocess.run(
        f'"{sys.executable}" -c "from pytest_mlebench.cli import main; raise SystemExit(main())"'
        f' report "{REAL_REPORTS[0]}" | true',
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""


def test_only_the_command_that_runs_is_imported() -> None:
    code = (
        "import sys; from pytest_mlebench.cli import main; "
        f"main(['report', {str(REAL_REPORTS[0])!r}]); "
        "heavy = {'numpy', 'pandas', 'scipy', 'sklearn', 'rich'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_messages_name_the_options_of_the_command(mine: Path, tmp_path: Path) -> None:
    message = complaint("list", "--split", "no/such.txt")
    assert message == "--split names a file that does not exist: no/such.txt"
    assert complaint("grade-sample", tmp_path / "none.csv", "tiny", "--competitions", mine) == (
        f"no such submission: {tmp_path / 'none.csv'}"
    )


def test_list_is_a_table_with_totals(tmp_path: Path) -> None:
    done = cli("list", "--data-dir", tmp_path)
    lines = done.stdout.splitlines()
    assert lines[0].split()[:4] == ["competition", "split", "category", "size"]
    row = next(line for line in lines if line.startswith("leaf-classification "))
    assert row.split()[1:] == ["low", "Image", "Classification", "36MB", "log_loss", "lower", "no"]
    assert "lite: 22 competitions, 158GB, 0 prepared" in lines
    assert "all: 75 competitions, 3.28TB, 0 prepared" in lines
    leaky = next(line for line in lines if line.startswith("random-acts-of-pizza"))
    assert leaky.endswith("leak")


def test_validate_looks_at_the_form_and_gives_no_score(mine: Path, tmp_path: Path) -> None:
    where = ("--competitions", mine, "--data-dir", tmp_path / "store")
    done = cli("validate", write_submission(tmp_path / "s.csv", 1.5), "tiny", *where)
    assert (done.returncode, done.stderr) == (0, "")
    assert "is a valid submission by its form" in done.stdout
    assert not {"silver", "1.5"} & set(done.stdout.split())
    public = tmp_path / "store" / "tiny" / "prepared" / "public"
    public.rename(tmp_path / "public")
    (tmp_path / "s.csv").write_text("id,z\n80,1\n")
    alone = ("--competitions", mine, "--public", tmp_path / "public")
    done = cli("validate", tmp_path / "s.csv", "tiny", *alone)
    assert done.returncode == 1
    assert done.stdout.startswith("invalid: column 'y' is missing")
    message = complaint("validate", tmp_path / "s.csv", "tiny", "--public", tmp_path)
    assert "unknown competition 'tiny'" in message
    message = complaint("validate", tmp_path / "s.csv", "tiny", *alone[:2], "--public", mine)
    assert message == f"--public has no sample submission sample_submission.csv: {mine}"
