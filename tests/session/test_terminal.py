"""What a session shows, on any terminal and in any log."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from attempt_folders import write_attempt, write_run
from plugin_session import Session

from pytest_mlebench.attempts.record import Phase
from pytest_mlebench.attempts.run_progress import RunProgress
from pytest_mlebench.grade import Grade
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.medals import Medal
from pytest_mlebench.plugin.log_lines import annotation
from pytest_mlebench.reports.results import ItemKey, Result

TWO = ("--mle-competition=demo-digits", "--mle-competition=demo-wine-cultivars")


HALF = """
    import os, shutil, sys
    if os.environ["COMPETITION_ID"] == "demo-digits":
        shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
                    os.environ["SUBMISSION_DIR"] + "/submission.csv")
    else:
        for number in range(100):
            print("::set-env name=X::y" if number == 90 else f"line {number}")
        sys.exit(3)
"""


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


def attempt(folder: RunFolder, seed: int, phase: Phase, start: float, **changes: Any) -> None:
    run = write_attempt(folder, "c", seed, phase)
    timings = {"running": start, **changes.pop("timings", {})}
    run.change(timings=timings, **changes)


def grade(medal: Medal) -> Grade:
    return Grade("c", 1.0, medal, True, 50.0, True, None, 4.0, 3.0, 2.0, 1.0, False, 100)


def test_progress_tells_running_finished_medals_and_time_left(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    expected = [ItemKey("c", seed) for seed in range(5)]
    progress = RunProgress(folder, expected)
    assert progress.look(93).line == "mle-bench: 0 running, 0 of 5 over, no medal yet"
    progress.began = 90
    attempt(folder, 0, "graded", 100, timings={"collected": 160}, grade=grade(Medal.GOLD))
    attempt(folder, 1, "graded", 100, timings={"collected": 160}, grade=grade(Medal.NONE))
    attempt(folder, 2, "running", 160)
    look = progress.look(190)
    assert look.line == "mle-bench: 1 running, 2 of 5 over, 1 gold, about 2m30s left"
    assert [one.elapsed for one in look.running] == [30]
    attempt(folder, 3, "waiting", 160)
    assert progress.look(190).line == (
        "mle-bench: 1 running, 1 waiting for CPUs, memory or GPUs, 2 of 5 over, 1 gold, "
        "about 2m30s left"
    )
    progress.expected = expected[:2]
    assert progress.look(190).line is None


def test_progress_of_an_attempt_is_read_from_what_it_leaves(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    attempt(folder, 0, "running", 100)
    place = folder.seed("c", 0).attempt(1)
    place.stats.write_text(
        '{"t": 1, "memory": 5, "cpu": 1}\n{"t": 2, "memory": 2000000000, "cpu": 2.5}\n'
        '{"t": 2.1, "gpu": 87.2, "gpu_memory": 5}\n{"t": 3, "me'
    )
    place.log.write_text("x" * 10**6 + "\n10 %\r\x1b[32m20 %\x1b[0m\n\n")
    (place.path / "validations.jsonl").write_text('{"result": "Submission invalid! no"}\n')
    (one,) = RunProgress(folder, [ItemKey("c", 0)]).look(130).running
    assert [*one.usage.texts.values()] == ["2GB", "1.5 CPUs", "GPU 87 %"]
    assert (one.valid, one.last_line) == (False, "20 %")
    (place.path / "validations.jsonl").write_text('{"result": "Submission is valid."}\n')
    (one,) = RunProgress(folder, [ItemKey("c", 0)]).look(130).running
    assert one.valid is True


def test_a_log_has_a_line_for_every_attempt_that_is_over(
    session: Session, workers: tuple[str, ...]
) -> None:
    command = session.agent("half", HALF)
    result = session.alone(f"--mle-agent={command}", *TWO, *workers)
    result.assert_outcomes(passed=1, failed=1)
    lines = [line for line in result.outlines if re.match(r"\d+/\d+  ", line)]
    assert sorted(line.split("  ")[1:3] for line in lines) == [
        ["demo-digits seed0", "no medal"],
        ["demo-wine-cultivars seed0", "failed: crash"],
    ]
    assert [line.split("  ")[0] for line in lines] == ["1/2", "2/2"]
    assert not [line for line in result.outlines if line.startswith("mlebench ")]
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", result.stdout.str())


def test_a_failure_shows_the_end_of_the_log_and_its_reason_first(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")  # where pytest does not cut its summary at 80 columns
    command = session.agent("half", HALF)
    result = session.alone(f"--mle-agent={command}", TWO[1])
    text = result.stdout.str()
    assert "the agent's log, last 20 lines" in text
    assert "| line 99" in result.outlines
    assert "| line 81" in result.outlines
    assert "| ::set-env name=X::y" in result.outlines
    assert "| line 79" not in result.outlines
    result.stdout.fnmatch_lines(
        [
            "without a score, by kind: 1 crash",
            "FAILED * crash: the agent left no submission.csv*",
        ]
    )


def test_a_job_of_github_has_groups_annotations_and_a_summary(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = session.path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    command = session.agent("half", HALF)
    result = session.alone(f"--mle-agent={command}", *TWO, "--mle-require=median")
    result.stdout.fnmatch_lines(
        [
            "::group::MLE-bench attempts",
            "1/2  demo-digits seed0  no medal  *",
            "::error title=demo-digits seed0%3A below the bar::*score*",
            "2/2  demo-wine-cultivars seed0  failed: crash  *",
            "::error title=demo-wine-cultivars seed0%3A crash::the agent left no *",
            "::endgroup::",
        ]
    )
    text = summary.read_text()
    assert text.startswith("before\n")
    assert "# MLE-bench report" in text
    commands = [line for line in result.outlines if line.lstrip().startswith("::")]
    assert len(commands) == 4


def test_an_annotation_cannot_be_broken_out_of() -> None:
    hostile = Result("a,b::c", 0, "error", error="100 %\n::warning::x")
    assert annotation(hostile, "lost") == (
        "::error title=a%2Cb%3A%3Ac seed0%3A benchmark::100 %25 ::warning::x"
    )
