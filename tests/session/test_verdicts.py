"""From what an agent does to what pytest says: blame decides."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest
from plugin_session import Session

ONE = "--mle-competition=demo-digits"

COPY = """
import os, shutil
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""


def test_a_valid_submission_passes_and_the_summary_counts_it(
    session: Session, workers: tuple[str, ...]
) -> None:
    command = session.agent("copier", COPY)
    result = session.run(f"--mle-agent={command}", ONE, "--mle-report=report.json", *workers)
    assert result.ret == 0, result.stdout.str()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["mle-bench: agent *copier*, 1 competition (demo-digits), 1 seed, require pass"]
    )
    result.stdout.fnmatch_lines(["*= MLE-bench =*", "valid * 100.00", "any medal * 0.00"])
    (only,) = session.report()["results"]
    assert only["outcome"] == "graded"
    assert only["grade"]["medal"] == "none"


HUGE = """
import os
rows = open(os.environ["DATA_DIR"] + "/sample_submission.csv").read().splitlines()
rows[1] = rows[1].split(",")[0] + "," + "9" * 4000
open(os.environ["SUBMISSION_DIR"] + "/submission.csv", "w").write("\\n".join(rows))
"""


def test_a_number_of_thousands_of_digits_is_the_agents_failure(session: Session) -> None:
    result = session.run(f"--mle-agent={session.agent('huge', HUGE)}", ONE)
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*must hold * 64 bits, given: *9999*"])


def test_an_item_under_the_bar_fails_with_a_few_lines(
    session: Session, workers: tuple[str, ...]
) -> None:
    command = session.agent("copier", COPY)
    result = session.run(f"--mle-agent={command}", ONE, "--mle-require=bronze", *workers)
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "demo-digits: score * (higher is better), no medal",
            "thresholds: gold *, silver *, bronze *, median *",
            "better than * % of 240 teams, * short of bronze",
            "run: *",
            "required: bronze",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert "def test_competition" not in result.stdout.str()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("", "demo-digits: the agent left no submission.csv*"),
        ("raise SystemExit(3)", "demo-digits: *it ended with exit code 3, see *run.log"),
        (
            "import os; open(os.environ['SUBMISSION_DIR'] + '/submission.csv', 'w').write('a,b')",
            "demo-digits: column 'id' is missing; it has 'a', 'b'",
        ),
    ],
    ids=["nothing", "crash", "broken"],
)
def test_the_agents_own_fault_is_a_failure(session: Session, code: str, message: str) -> None:
    result = session.run(f"--mle-agent={session.agent('broken', code)}", ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([message])


def test_what_is_there_when_the_time_is_up_is_graded(session: Session) -> None:
    command = session.agent("slow", COPY + "\nimport time; time.sleep(600)")
    result = session.run(f"--mle-agent={command}", ONE, "--mle-time-limit=4s", "--mle-run=late")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["not standard: time 4s instead of 10m"])
    (record,) = session.records("late").values()
    assert record["ending"]["reason"] == "time-limit"


def test_the_benchmarks_own_fault_is_an_error_that_counts_as_no_medal(
    session: Session, workers: tuple[str, ...]
) -> None:
    session.pytester.makeconftest(
        """
        from pytest_mlebench.errors import SandboxError

        class Lost:
            name = "lost"
            def preflight(self, agent, limits, network):
                return ("the sandbox of this test is always lost",)
            def run(self, job):
                raise SandboxError("the container vanished")

        def pytest_mle_sandbox(config, name, agent):
            return Lost()
        """
    )
    result = session.run("--mle-agent=dummy", ONE, "--mle-run=lost", "--mle-fail-under=0", *workers)
    assert result.ret == 1
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["the sandbox of this test is always lost"])
    result.stdout.fnmatch_lines(["the benchmark failed: the container vanished"])
    result.stdout.fnmatch_lines(["demo-digits *error*"])
    assert "Traceback" not in result.stdout.str()
    attempts = session.records("lost")
    assert [record["phase"] for record in attempts.values()] == ["error"] * 3


def test_medals_are_letters_and_words(session: Session, workers: tuple[str, ...]) -> None:
    session.pytester.makeconftest(
        """
        import shutil
        import pytest
        from pytest_mlebench.sandbox import Ending

        class Oracle:
            name = "oracle"
            def preflight(self, agent, limits, network):
                return ()
            def run(self, job):
                shutil.copy(job.data.parent / "private" / "answers.csv", job.submission)
                return Ending("exited", 0, 0.1)

        def pytest_mle_sandbox(config, name, agent):
            return Oracle()
        """
    )
    result = session.run("--mle-agent=dummy", ONE, *workers)
    result.assert_outcomes(passed=1)
    if not workers:
        result.stdout.fnmatch_lines(["*G *[[]100%[]]"])
    verbose = session.run("--mle-agent=dummy", ONE, "-v", *workers)
    verbose.stdout.fnmatch_lines(["*GOLD*"])


def test_junit_carries_score_medal_and_thresholds(
    session: Session, workers: tuple[str, ...]
) -> None:
    session.run("--mle-agent=dummy", ONE, "--junit-xml=junit.xml", *workers)
    case = ET.parse(session.path / "junit.xml").find(".//testcase")
    assert case is not None
    found = {p.get("name"): p.get("value") for p in case.findall("properties/property")}
    assert found["mle_competition"] == "demo-digits"
    assert found["mle_medal"] == "none"
    assert float(found["mle_score"] or "nan") > 0
    assert {"mle_gold", "mle_silver", "mle_bronze", "mle_median", "mle_run"} <= found.keys()


def test_a_failing_comparison_of_medals_explains_itself(session: Session) -> None:
    session.pytester.makepyfile(
        """
        import pytest
        from pytest_mlebench import Medal

        @pytest.mark.mle(competition="demo-digits")
        def test_gold(mle_grade):
            assert mle_grade.medal >= Medal.GOLD
        """
    )
    result = session.run("--mle-agent=dummy", ".")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*assert medal: none >= gold", "*demo-digits: score *", "*thresholds: gold *"]
    )


def test_a_gate_that_is_missed_fails_the_session(
    session: Session, workers: tuple[str, ...]
) -> None:
    (session.path / "mine.txt").write_text("demo-digits\n")
    result = session.run(
        "--mle-agent=dummy", "--mle-split=mine.txt", "--mle-fail-under=60", *workers
    )
    assert result.ret == 1
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["missed: any-medal rate of * is 0.00 %, below the bar of 60 % (--mle-fail-under=60)"]
    )


def test_reports_are_written_by_suffix(session: Session, workers: tuple[str, ...]) -> None:
    reports = [f"--mle-report=out/r{suffix}" for suffix in (".json", ".csv", ".md")]
    result = session.run("--mle-agent=dummy", ONE, *reports, *workers)
    assert result.ret == 0
    data = json.loads((session.path / "out/r.json").read_text())
    assert data["disclosure"]["agent"] == "dummy"
    assert data["disclosure"]["sandbox"] == "process"
    assert data["disclosure"]["data"] == {"demo-digits": "none"}
    assert "demo-digits" in (session.path / "out/r.csv").read_text()
    assert "demo-digits" in (session.path / "out/r.md").read_text()


def test_secrets_stay_out_of_everything_that_is_written(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "s3cr3t-v4lu3")
    (session.path / "agent.toml").write_text(
        "name = 'talker'\n"
        """command = ["python", "-c", "import os; print('key', os.environ['KEY'])"]\n"""
        "[env]\nKEY = '${MY_KEY}'\n"
    )
    result = session.run("--mle-agent=agent.toml", ONE, "--mle-run=talk", "--mle-report=r.json")
    result.assert_outcomes(failed=1)
    written = [path for path in session.path.rglob("*") if path.is_file()]
    logs = [path for path in written if path.name == "run.log"]
    assert "key ***" in logs[0].read_text()
    assert not [path for path in written if b"s3cr3t-v4lu3" in path.read_bytes()]
    assert "s3cr3t-v4lu3" not in result.stdout.str()


def test_a_missing_secret_is_a_usage_error(session: Session) -> None:
    (session.path / "agent.toml").write_text(
        "name = 'talker'\ncommand = 'true'\n[env]\nKEY = '${NOT_SET_ANYWHERE}'\n"
    )
    result = session.run("--mle-agent=agent.toml", ONE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*needs the environment variable NOT_SET_ANYWHERE*"])


CHEATS = """
import csv
with open(os.environ["DATA_DIR"] + "/sample_submission.csv") as file:
    ids = [row["id"] for row in csv.DictReader(file)]
with open(os.environ["CODE_DIR"] + "/main.py", "w") as file:
    file.write("LABELS = {" + ", ".join(f"{each!r}: 1" for each in ids) + "}")
"""


def test_an_audit_that_finds_a_violation_fails_the_session_if_asked_to(session: Session) -> None:
    command = session.agent("cheat", COPY + CHEATS)
    asked = (f"--mle-agent={command}", ONE, "--mle-run=r", "--mle-audit=on")
    result = session.run(*asked, "--mle-fail-on=violation", "--mle-report=r.json")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["missed: demo-digits seed 0: artefacts/code/main.py has *ids*"])
    (found,) = session.report("r.json")["audit"]["attempts"]
    assert [each["level"] for each in found["findings"]].count("violation") == 1
    assert session.run(*asked).ret == pytest.ExitCode.OK
    result = session.run(f"--mle-agent={command}", ONE, "--mle-fail-on=violation")
    result.stderr.fnmatch_lines(["*--mle-fail-on=violation has nothing to judge without*"])
