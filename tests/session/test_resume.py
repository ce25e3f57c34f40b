"""Runs on disk: what is finished stays finished, whatever happens to the session."""

from __future__ import annotations

import json
import os
import random
import shlex
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
    session.run(agent, "--mle-run=mine", *TWO, "-k", "digits", *workers).assert_outcomes(passed=1)
    first = session.records("mine")
    folder = session.path / "mle-runs/mine"
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    result = session.run(agent, "--mle-run=mine", *TWO, *workers)
    assert folder.stat().st_mode & 0o777 == 0o700, "what others could read is closed again"
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["resumes: 1 of 2 done already"])
    second = session.records("mine")
    assert {key: second[key] for key in first} == first
    assert sorted(second) == ["demo-digits/seed0/attempt1", "demo-wine-cultivars/seed0/attempt1"]


def test_the_name_of_a_run_is_enough_to_resume_it(
    session: Session, workers: tuple[str, ...]
) -> None:
    options = ("--mle-time-limit=9m", "--mle-seeds=2", "--mle-require=bronze", "--mle-network=none")
    arguments = ("--mle-agent=dummy", "--mle-run=mine", *TWO, *options, "--mle-fail-under=10")
    assert session.run(*arguments, "-k", "digits and seed0", *workers).ret == 1
    result = session.run("--mle-agent=dummy", "--mle-run=mine", *workers)
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(
        [
            "mle-bench: agent dummy, 2 competitions (demo-digits, demo-wine-cultivars), 2 seeds, "
            "require bronze",
            "missed: any-medal rate * is 0.00 %, below the bar of 10 %*",
        ]
    )
    records = session.records("mine")
    assert len(records) == 4
    assert {r["conditions"]["limits"]["time_seconds"] for r in records.values()} == {540}
    assert {r["conditions"]["network"] for r in records.values()} == {"none"}


def test_the_printed_command_resumes_the_run(session: Session) -> None:
    command = session.agent("idle", "")
    result = session.run(f"--mle-agent={command}", *TWO, "-x", "--mle-seeds=2", "--mle-runs-dir=R")
    line = next(line for line in result.outlines if line.startswith("next: "))
    assert line.endswith(" (resumes)")
    words = shlex.split(line.removeprefix("next: pytest ").removesuffix(" (resumes)"))
    again = session.run(*words)
    again.assert_outcomes(failed=4)
    again.stdout.fnmatch_lines(["resumes: 1 of 4 done already"])


def test_a_run_of_ones_own_tests_is_resumed_by_its_name(session: Session) -> None:
    session.pytester.makepyfile(
        test_mine="""
        import pytest

        @pytest.mark.mle(competition=["demo-digits", "demo-wine-cultivars"])
        def test_mine(mle_grade):
            assert mle_grade.valid
        """
    )
    arguments = ("--mle-agent=dummy", "--mle-run=mine")
    session.run(*arguments, "test_mine.py", "-k", "digits").assert_outcomes(passed=1)
    session.run(*arguments).assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "--mle-competition=demo-wine-cultivars",
            "run 'mine' was planned with --mle-competition=demo-digits, given: "
            "demo-wine-cultivars: leave the selection out to resume the run, or choose another "
            "name with --mle-run",
        ),
        (
            "--mle-seeds=3",
            "run 'mine' was planned with --mle-seeds=1, given: 3: leave it out to resume the "
            "run, or choose another name with --mle-run",
        ),
        (
            "--mle-time-limit=1m",
            "run 'mine' was made under other conditions (limits time was not known, is 1m): "
            "choose another name with --mle-run, or repeat what has changed with "
            "--mle-rerun=changed",
        ),
        (
            "--mle-network=none",
            "run 'mine' was made under other conditions (network was open, is none): *",
        ),
    ],
)
def test_a_run_is_not_resumed_with_another_plan(session: Session, given: str, message: str) -> None:
    arguments = ("--mle-agent=dummy", "--mle-run=mine")
    session.run(*arguments, TWO[0]).assert_outcomes(passed=1)
    before = session.records("mine"), (session.path / "mle-runs/mine/run.json").read_text()
    result = session.run(*arguments, given)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
    after = session.records("mine"), (session.path / "mle-runs/mine/run.json").read_text()
    assert after == before


def test_the_second_release_is_not_judged_by_the_first_ones_medals(session: Session) -> None:
    agent = f"--mle-agent={session.agent('agent', COUNTING.format(pause=0))}"
    session.run(agent, "--mle-run=mine", TWO[0]).assert_outcomes(passed=1)
    session.agent("agent", "raise SystemExit('broken')")
    result = session.run(agent, "--mle-run=mine")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: run 'mine' was made under other conditions (agent named files was *): choose *"]
    )
    result = session.run(agent, "--mle-run=mine", "--mle-rerun=changed", "--mle-report=r.json")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["resumes: 0 of 1 done already"])
    records = session.records("mine")
    assert [record["superseded"] for record in records.values()] == [True, False]
    assert [r["outcome"] for r in session.report("r.json")["results"]] == ["failed"]


def test_a_release_that_changes_only_what_it_imports_is_another_one(session: Session) -> None:
    script = session.path / "own_agent.py"
    helper = session.path / "own_helper.py"
    script.write_text("import own_helper\n")
    helper.write_text(COUNTING.format(pause=0))
    arguments = (f"--mle-agent={sys.executable} {script}", "--mle-run=mine", TWO[0])
    session.run(*arguments).assert_outcomes(passed=1)
    helper.write_text("raise SystemExit('broken')")
    result = session.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*made under other conditions (agent named files was *"])


def test_all_gates_of_a_run_are_judged_again_when_it_is_resumed(session: Session) -> None:
    agent = f"--mle-agent={session.agent('counting', COUNTING.format(pause=0))}"
    session.run("--mle-agent=baseline", TWO[0], "--mle-report=better.json")
    gates = ("--mle-audit=on", "--mle-fail-on=violation", "--mle-baseline=better.json")
    session.run(agent, "--mle-run=mine", TWO[0], *gates, "--mle-snapshot-every=1h")
    plan = json.loads((session.path / "mle-runs/mine/run.json").read_text())
    assert (plan["audit"], plan["fail_on"], plan["snapshot_every"]) == (True, "violation", 3600)
    result = session.run(agent, "--mle-run=mine")
    result.stdout.fnmatch_lines(["audit of 1 attempts: *", "compared with better.json:"])
    (session.path / "better.json").unlink()
    result = session.run(agent, "--mle-run=mine")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*better.json*"])


def test_a_run_of_some_tests_is_not_resumed_with_others(session: Session) -> None:
    test = """
        import pytest

        @pytest.mark.mle(competition="demo-digits")
        def test_one(mle_grade):
            pass
        """
    session.pytester.makepyfile(test_mine=test, test_other=test)
    arguments = ("--mle-agent=dummy", "--mle-run=mine")
    session.run(*arguments, "test_mine.py").assert_outcomes(passed=1)
    session.run(*arguments, "test_mine.py::test_one").assert_outcomes(passed=1)
    result = session.run(*arguments, "test_other.py")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*run 'mine' was planned with the tests test_mine.py, given: test_other.py: leave*"]
    )


def test_a_changed_agent_of_a_fixture_is_refused_too(session: Session) -> None:
    conftest = """
        import pytest
        from pytest_mlebench import Agent

        @pytest.fixture
        def mle_agent():
            return Agent("mine", command=("sh", "-c", "exit {status}"))
        """
    session.pytester.makepyfile(
        test_mine="""
        import pytest

        @pytest.mark.mle(competition="demo-digits")
        def test_mine(mle_run):
            pass
        """
    )
    arguments = ("--mle-agent=mine", "test_mine.py", "--mle-run=mine")
    session.pytester.makeconftest(conftest.format(status=1))
    result = session.run(*arguments)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.OK, "an attempt that a test only runs has run, too"
    assert [r["phase"] for r in session.records("mine").values()] == ["graded"]
    session.pytester.makeconftest(conftest.format(status=2))
    result = session.run(*arguments)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["configuration: *was made under other conditions (agent command*"])
    session.run(*arguments, "--mle-rerun=changed").assert_outcomes(passed=1)
    assert len(session.records("mine")) == 2


def test_a_session_that_visits_a_part_leaves_the_report_of_the_whole_run(
    session: Session,
) -> None:
    arguments = ("--mle-agent=dummy", "--mle-run=mine")
    session.run(*arguments, *TWO).assert_outcomes(passed=2)
    for part in (("-k", "digits"), ("--setup-plan",), ("-x",)):
        session.run(*arguments, *part)
        results = session.report("mle-runs/mine/report.json")["results"]
        assert [result["outcome"] for result in results] == ["graded", "graded"]


def test_nothing_is_removed_by_a_resume(session: Session) -> None:
    arguments = ("--mle-agent=dummy", "--mle-run=mine")
    session.run(*arguments, TWO[0]).assert_outcomes(passed=1)
    attempt = session.path / "mle-runs/mine/demo-digits/seed0/attempt1"
    record = attempt / "record.json"
    later = record.read_text().replace('"schema": 2', '"schema": 9')
    record.write_text(later)
    result = session.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *attempt1/record.json: has schema 9, this version reads*"])
    assert record.read_text() == later
    assert (attempt / "submission.csv").is_file()


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
    assert process.wait(120) == pytest.ExitCode.INTERRUPTED
    wait_for(lambda: not processes(word))


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
    result.stderr.fnmatch_lines(
        ["ERROR: --mle-runs-dir is in a folder that cannot be written, /proc *: choose another"]
    )


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
