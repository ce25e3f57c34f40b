"""Runs on disk: what is finished stays finished, whatever happens to the session."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from plugin_session import Session

TWO = ("--mle-competition=demo-digits", "--mle-competition=demo-wine-cultivars")

# leaves a mark each time it runs, outside of its own workspace's submission
COUNTING = """
import os, shutil, time
print("began", flush=True)
time.sleep({pause})
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""


def start(session: Session, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.Popen(
        command, cwd=session.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_a_finished_run_is_not_repeated_but_resumed(
    session: Session, workers: tuple[str, ...]
) -> None:
    agent = f"--mle-agent={session.agent('counting', COUNTING.format(pause=0))}"
    session.run(agent, "--mle-run=mine", TWO[0], *workers).assert_outcomes(passed=1)
    first = session.records("mine")
    result = session.run(agent, "--mle-run=mine", *TWO, *workers)
    result.assert_outcomes(passed=2)
    second = session.records("mine")
    assert {key: second[key] for key in first} == first
    assert sorted(second) == ["demo-digits/seed0/attempt1", "demo-wine-cultivars/seed0/attempt1"]


def test_an_interrupted_attempt_runs_again(session: Session) -> None:
    agent = f"--mle-agent={session.agent('counting', COUNTING.format(pause=3))}"
    process = start(session, agent, "--mle-run=mine", *TWO)
    done = session.path / "mle-runs/mine/demo-digits/seed0/attempt1/record.json"
    wait_for(lambda: done.is_file() and '"graded"' in done.read_text())
    process.kill()
    process.wait()
    before = done.read_text()
    result = session.run(agent, "--mle-run=mine", *TWO)
    result.assert_outcomes(passed=2)
    assert done.read_text() == before


def test_kills_at_random_moments_lose_no_finished_attempt(session: Session) -> None:
    agent = f"--mle-agent={session.agent('counting', COUNTING.format(pause=0.2))}"
    arguments = (agent, "--mle-seeds=2", *TWO)
    session.run(*arguments, "--mle-run=calm", "--mle-report=calm.json").assert_outcomes(passed=4)
    chance = random.Random(4)
    root = session.path / "mle-runs/wild"
    finished: dict[Path, str] = {}
    for _ in range(3):
        process = start(session, *arguments, "--mle-run=wild")
        time.sleep(chance.uniform(1, 6))
        process.kill()
        process.wait()
        for path, text in finished.items():
            assert path.read_text() == text
        records = {path: path.read_text() for path in root.rglob("record.json")}
        finished |= {path: text for path, text in records.items() if '"graded"' in text}
    result = session.run(*arguments, "--mle-run=wild", "--mle-report=wild.json")
    result.assert_outcomes(passed=4)

    def verdicts(name: str) -> list[tuple[str, int, float]]:
        results = session.report(name)["results"]
        return sorted((r["competition"], r["seed"], r["grade"]["score"]) for r in results)

    assert verdicts("wild.json") == verdicts("calm.json")


def test_control_c_leaves_no_process_behind(
    session: Session, processes: Callable[[str], list[int]]
) -> None:
    word = f"never-ending-{os.getpid()}"
    session.agent("endless", "import time; time.sleep(600)")
    process = start(session, f"--mle-agent=python endless.py {word}", TWO[0])
    wait_for(lambda: len(processes(word)) > 1)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == pytest.ExitCode.INTERRUPTED
    wait_for(lambda: not processes(word), 10)


def test_two_sessions_cannot_share_a_run(session: Session) -> None:
    agent = f"--mle-agent={session.agent('counting', COUNTING.format(pause=30))}"
    process = start(session, agent, "--mle-run=mine", TWO[0])
    try:
        wait_for((session.path / "mle-runs/mine/run.json").is_file)
        result = session.run(agent, "--mle-run=mine", TWO[0])
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["ERROR: run 'mine' is in use by another session*"])
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def test_a_run_belongs_to_one_agent(session: Session) -> None:
    session.run("--mle-agent=dummy", "--mle-run=mine", TWO[0]).assert_outcomes(passed=1)
    result = session.run("--mle-agent=baseline", "--mle-run=mine", TWO[0])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: run 'mine' belongs to agent 'dummy', not to 'baseline'*"])


def test_a_runs_folder_that_cannot_be_written_is_a_usage_error(session: Session) -> None:
    (session.path / "taken").write_text("a file")
    result = session.run("--mle-agent=dummy", TWO[0], "--mle-runs-dir=taken")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --mle-runs-dir must be a folder, given: taken"])
    result = session.run("--mle-agent=dummy", TWO[0], "--mle-runs-dir=/proc/nowhere")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: cannot write to /proc/nowhere*: choose another folder*"])


def test_a_worker_that_is_killed_leaves_an_error_not_a_gap(session: Session) -> None:
    session.pytester.makeconftest(
        """
        import os, signal

        def pytest_mle_before_run(job, run):
            if job.competition == "demo-digits":
                os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    result = session.run("--mle-agent=dummy", *TWO, "-n2", "--mle-report=report.json")
    assert result.ret == 1
    outcomes = {r["competition"]: r["outcome"] for r in session.report()["results"]}
    assert outcomes == {"demo-digits": "error", "demo-wine-cultivars": "graded"}
    result.stdout.fnmatch_lines(["demo-digits *error*"])
