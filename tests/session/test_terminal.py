"""What a session shows, on any terminal and in any log."""

from __future__ import annotations

import re
from pathlib import Path

from plugin_session import Session

from pytest_mlebench.attempts.record import AttemptRecord, Phase, Run
from pytest_mlebench.grade import Grade
from pytest_mlebench.medals import Medal
from pytest_mlebench.plugin.live_status import progress_line

TWO = ("--mle-competition=demo-digits", "--mle-competition=demo-wine-cultivars")


def summary(lines: list[str]) -> list[str]:
    start = next(k for k, line in enumerate(lines) if "= MLE-bench =" in line)
    return lines[start:]


def test_the_summary_fits_eighty_columns_without_control_characters(
    session: Session, workers: tuple[str, ...]
) -> None:
    result = session.run("--mle-agent=dummy", *TWO, "--mle-seeds=2", "--mle-run=r", *workers)
    result.assert_outcomes(passed=4)
    lines = summary(result.outlines)
    tables = [line for line in lines if not line.startswith(("report:", "run:", "next:"))]
    assert max(map(len, tables)) <= 80
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", result.stdout.str())
    result.stdout.fnmatch_lines(
        [
            "competitions * 2 of 6",
            "seeds * 2",
            "any medal * 0.00 * 0.00",
            "report: *mle-runs/r/report.json",
            "run: *mle-runs/r",
            "next: pytest-mlebench report *mle-runs/r",
        ]
    )


def test_quiet_sessions_still_have_the_summary(session: Session) -> None:
    result = session.run("--mle-agent=dummy", TWO[0], "-q")
    lines = result.outlines
    assert not [line for line in lines if line.startswith("mle-bench: agent")]
    assert "demo-digits" in "\n".join(summary(lines))


def test_the_first_failure_stops_a_session_and_the_rest_is_missing(session: Session) -> None:
    command = session.agent("idle", "")
    result = session.run(f"--mle-agent={command}", *TWO, "-x", "--mle-report=r.json")
    assert result.ret == 1
    outcomes = {r["competition"]: r["outcome"] for r in session.report("r.json")["results"]}
    assert outcomes == {"demo-digits": "failed", "demo-wine-cultivars": "missing"}
    result.stdout.fnmatch_lines(["next: pytest '--mle-agent=python idle.py' --mle-run=* (resumes)"])


def test_the_last_failures_can_be_run_again(session: Session) -> None:
    code = """
        import os, shutil
        if os.environ["COMPETITION_ID"] == "demo-digits":
            shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
                        os.environ["SUBMISSION_DIR"] + "/submission.csv")
    """
    command = session.agent("half", code)
    session.run(f"--mle-agent={command}", *TWO).assert_outcomes(passed=1, failed=1)
    result = session.run(f"--mle-agent={command}", *TWO, "--lf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["demo-wine-cultivars *failed*"])


def run(phase: Phase, start: float, end: float | None, medal: Medal | None) -> Run:
    grade = None
    if medal is not None:
        grade = Grade("c", 1.0, medal, True, 50.0, True, None, 4.0, 3.0, 2.0, 1.0, False, 100)
    timings = {"running": start} | ({} if end is None else {"collected": end})
    return Run(Path("f"), AttemptRecord("c", 0, 1, "a", phase, grade=grade, timings=timings))


def test_progress_tells_running_finished_medals_and_time_left() -> None:
    runs = [
        run("graded", 100, 160, Medal.GOLD),
        run("graded", 100, 160, Medal.NONE),
        run("running", 160, None, None),
    ]
    line = progress_line(runs, 5, began=90, now=190)
    assert line == "mle-bench: 1 running, 2 of 5 over, 1 gold, about 2m30s left"
    queued = [*runs, run("waiting", 160, None, None)]
    assert progress_line(queued, 5, began=90, now=190) == (
        "mle-bench: 1 running, 1 waiting for CPUs, memory or GPUs, 2 of 5 over, 1 gold, "
        "about 2m30s left"
    )
    assert progress_line(runs[:2], 2, began=90, now=190) is None
    assert progress_line([], 5, began=90, now=93) == (
        "mle-bench: 0 running, 0 of 5 over, no medal yet"
    )


def test_a_run_says_what_it_is_comparable_with_and_what_its_author_says(session: Session) -> None:
    folder = session.path / "agents" / "mine"
    folder.mkdir(parents=True)
    (folder / "agent.toml").write_text('command = "false"\nllms = "gpt-5"\nstatement = "honest"\n')
    result = session.run("--mle-agent=mine", "--mle-competition=demo-digits", "--mle-report=r.json")
    result.stdout.fnmatch_lines(
        [
            "conditions: not standard: time 10m instead of 24h; *",
            "llms, by the author's own word: gpt-5",
            "statement, by the author's own word: honest",
        ]
    )
    found = session.report("r.json")["comparability"]
    assert found["statements"] == {"llms": "gpt-5", "statement": "honest"}
    assert "competitions 1 outside the benchmark" in found["reasons"]
