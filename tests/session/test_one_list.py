"""Everything that is wrong is said at once, with what would work here."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from plugin_session import Session

WORKS = "this would work here: pytest "


def refused(session: Session, *arguments: str) -> list[str]:
    """Return the lines of a usage error that comes before anything has run."""
    result = session.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert not (session.path / "mle-runs").exists()
    return [line for line in result.errlines if line]


def suggestion(lines: list[str]) -> list[str]:
    """Return the arguments of the command line that is said to work."""
    assert lines[-1].startswith(WORKS)
    return shlex.split(lines[-1].removeprefix(WORKS))


def test_the_first_command_of_a_new_user_meets_one_list_and_then_works(session: Session) -> None:
    lines = refused(
        session,
        *("--mle-agent=myagent", "--mle-split=lite", "--mle-cpus=3600", "--mle-gpus=0"),
        *("--mle-time-limit=24", "--mle-memory=10", "--mle-fail-under=medium:60"),
        *("--mle-report=/proc/r.json", "--mle-seeds=2"),
    )
    assert lines[0] == "ERROR: 7 problems:"
    problems = "\n".join(lines)
    for words in (
        "--mle-time-limit needs a unit: 24h or 24s?",
        "--mle-memory needs a unit: 10GB or 10MB?",
        "unknown agent 'myagent' (known: baseline, dummy); make one with pytest-mlebench init",
        "--mle-report is in a folder that cannot be written, /proc (",
        "--mle-fail-under=medium:60 judges the split medium, but it is not selected: add",
        "the limit of 3600 CPUs is more than the",
        "no Kaggle credentials: make a token",
    ):
        assert words in problems
    assert suggestion(lines) == [
        *("--mle-agent=baseline", "--mle-split=demo", "--mle-seeds=2", "--mle-limits=host")
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--mle-agent=dumy", "--mle-competition=demo-digits"],
        ["--mle-agent=dummy", "--mle-competition=demo-digits", "--mle-cpus=9000"],
        ["--mle-agent=dummy", "--mle-split=lite", "--mle-fail-under=low:60"],
        ["--mle-agent=dummy", "--mle-split=demo", "--mle-seeds=100000", "-k", "digits"],
        ["--mle-agent=dummy", "--mle-competition=demo-digits", "--mle-report="],
        ["--mle-agent=dummy", "--mle-split=", "-k", "digits"],
    ],
    ids=["agent", "cpus", "data", "seeds", "report", "split"],
)
def test_what_is_said_to_work_works(session: Session, arguments: list[str]) -> None:
    words = suggestion(refused(session, *arguments))
    result = session.run(*words, *(() if "-k" in words else ("-k", "digits")))
    result.assert_outcomes(passed=1, deselected=0 if "demo-digits" in " ".join(words) else 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mle-agent="], "--mle-agent is empty, as a variable that is not set leaves it: *"),
        (["--mle-agent=dummy", "--mle-split="], "--mle-split is empty*"),
        (["--mle-agent=dummy", "--mle-competition="], "--mle-competition is empty*"),
        (["--mle-agent=dummy", "--mle-run="], "--mle-run is empty*"),
        (["--mle-agent=dummy", "--mle-split=,"], "--mle-split is empty*"),
        (
            ["--mle-agent=dummy", "--mle-seeds=100000"],
            "--mle-seeds=100000 on 6 competitions is 600,000 attempts of up to 10m each, 100,000 *",
        ),
        (["--mle-agent=python none.py"], "--mle-agent names a script that does not exist: none.py"),
        (["--mle-agent=dummy", "--mle-data-dir=file"], "--mle-data-dir must be a folder, given: *"),
        (["--mle-agent=dummy", "--mle-report=dir.json"], "--mle-report names a folder, not a *"),
        (["--mle-agent=dummy", "--mle-report=file/r.json"], "--mle-report is below a file, *"),
        (
            ["--mle-agent=dummy", "--mle-competition=demo-digits", "--mle-fail-under=demo:50"],
            "--mle-fail-under=demo:50 judges the split demo, but only 1 of its 6 *",
        ),
    ],
)
def test_what_can_be_known_before_is_refused_before(
    session: Session, arguments: list[str], message: str
) -> None:
    (session.path / "file").touch()
    (session.path / "dir.json").mkdir()
    result = session.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])


def test_an_agent_whose_script_is_not_there_is_refused(session: Session) -> None:
    (session.path / "agent").mkdir()
    (session.path / "agent" / "agent.toml").write_text('command = ["python", "solve.py"]\n')
    (line,) = refused(session, "--mle-agent=./agent")[:1]
    assert line.startswith("ERROR: agent 'agent': no such script in ")


def test_a_value_of_the_ini_file_is_named_as_it_is_there(session: Session) -> None:
    session.pytester.makeini("[pytest]\nmle_seeds = two\n")
    result = session.run("--mle-agent=dummy")
    result.stderr.fnmatch_lines(["ERROR: mle_seeds in tox.ini must be a whole number*"])


def test_limits_of_the_host_are_disclosed_as_not_standard(session: Session, store: Path) -> None:
    agent = session.agent("lazy", "pass")
    common = (f"--mle-agent={agent}", "--mle-competition=spooky-author-identification")
    offline = ("--mle-prepare=never", "--mle-missing=skip")
    result = session.run(*common, *offline, "--mle-limits=host", "--mle-report=r.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED, "a session that skips everything fails"
    result.stdout.fnmatch_lines(
        ["not standard: cpus * instead of 36; *", "limits of this host, not MLE-bench's standard"]
    )
    disclosure = session.report("r.json")["disclosure"]
    assert "limits of this host, not MLE-bench's standard" in disclosure["notes"]
    assert disclosure["deviations"]["gpus"] == ["0", "1"]
    assert disclosure["limits"]["time"] == "24h"
