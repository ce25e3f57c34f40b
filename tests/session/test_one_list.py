"""Everything that is wrong is said at once, with what would work here."""

from __future__ import annotations

import shlex
from fnmatch import fnmatch
from pathlib import Path

import pytest
from filelock import FileLock
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
    problems = "\n".join(lines)
    full = "the selection needs about " in problems  # the disk here may be too small as well
    assert lines[0] == f"ERROR: {8 if full else 7} problems:"
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
        ["--mle-agent=dumy", "--mle-runs-dir=/proc/x", "--mle-competition=demo-digits"],
        ["--mle-agent=dumy", "--mle-hosts=nope.toml", "--mle-competition=demo-digits"],
        ["--mle-agent=dummy", "--mle-time-limit=20000h", "--mle-seeds=2", "-k", "digits-seed0"],
        ["--mle-agent=dummy", "--mle-fail-on=violation", "--mle-competition=demo-digits"],
    ],
    ids=[
        *("agent", "cpus", "data", "seeds", "report", "split"),
        *("runs-dir", "hosts", "time-limit", "fail-on"),
    ],
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


def test_all_that_is_wrong_with_a_run_and_its_folders_is_in_the_list(session: Session) -> None:
    session.pytester.makeini("[pytest]\nmle_competitions = nowhere\n")
    text = "\n".join(
        refused(
            session,
            *("--mle-agent=dumy", "--mle-runs-dir=/proc/x", "--mle-hosts=nope.toml"),
            *("--mle-fail-on=violation", "--mle-report=ok.json", "--mle-report=bad.pdf"),
        )
    )
    for words in (
        "unknown agent 'dumy', did you mean 'dummy'?",
        "--mle-runs-dir is in a folder that cannot be written, /proc (",
        "nope.toml",
        "--mle-fail-on=violation has nothing to judge without --mle-audit=on",
        "mle_competitions names a folder that does not exist: ",
        "--mle-report must end in ",
    ):
        assert words in text
    assert text.startswith("ERROR: 6 problems:")
    assert WORKS not in text, "no option would make the folder of the ini file"


def test_a_run_that_is_held_or_of_another_agent_is_in_the_list(session: Session) -> None:
    only = "--mle-competition=demo-digits"
    session.run("--mle-agent=dummy", "--mle-run=mine", only).assert_outcomes(passed=1)
    before = sorted((session.path / "mle-runs").rglob("*"))
    lock = FileLock(session.path / "mle-runs" / "mine" / ".session.lock")
    with lock:
        result = session.run("--mle-agent=baseline", "--mle-run=mine", "--mle-report=/proc/r.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = "\n".join(line for line in result.errlines if line)
    assert text.startswith("ERROR: 3 problems:")
    assert "run 'mine' is in use by another session: wait for it, or choose another" in text
    assert "run 'mine' belongs to agent 'dummy', not to 'baseline'" in text
    assert suggestion(text.splitlines()) == ["--mle-agent=baseline"]
    result = session.run(
        "--mle-agent=dummy", "--mle-run=mine", "--mle-network=none", "--mle-grace=1"
    )
    text = "\n".join(line for line in result.errlines if line)
    assert text.startswith("ERROR: 2 problems:")
    assert "run 'mine' was made under other conditions (network was open, is none)" in text
    assert "--mle-grace needs a unit" in text
    assert sorted((session.path / "mle-runs").rglob("*")) == before


def test_one_bad_report_costs_no_other(session: Session) -> None:
    words = ["--mle-agent=dummy", "--mle-competition=demo-digits"]
    reports = ["--mle-report=a.json", "--mle-report=/proc/r.json", "--mle-report=b.pdf"]
    lines = refused(session, *words, *reports, "--mle-report=c.md")
    assert suggestion(lines) == [*words, "--mle-report=a.json", "--mle-report=c.md"]


def test_a_store_of_the_environment_is_named_as_it_is_and_another_one_suggested(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    (session.path / "file").touch()
    monkeypatch.setenv("MLEBENCH_DATA_DIR", "file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(session.path / "cache"))
    lines = refused(session, "--mle-agent=dummy", "--mle-competition=demo-digits")
    assert lines[0] == "ERROR: MLEBENCH_DATA_DIR must be a folder, given: file"
    words = suggestion(lines)
    assert words[-1] == f"--mle-data-dir={session.path / 'cache' / 'mle-bench' / 'data'}"
    session.run(*words).assert_outcomes(passed=1)


OWN_AGENT = """
    import pytest
    from pytest_mlebench import Agent

    @pytest.fixture
    def mle_agent():
        return Agent(name="mine", function=print)
"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mle-cpus=3600"], "the limit of 3600 CPUs is more than the *"),
        (["--mle-time-limit=20000h"], "--mle-seeds=1 on 6 competitions is 6 attempts of up to *"),
        (["--mle-seeds=100000"], "--mle-seeds=100000 on 6 competitions is 600,000 attempts: *"),
    ],
)
def test_what_options_alone_tell_is_refused_for_an_agent_of_a_fixture_too(
    session: Session, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{session.path}/none.sock")
    session.pytester.makeconftest(OWN_AGENT)
    session.pytester.makepyfile("def test_it(mle_grade): pass")
    lines = refused(session, "--mle-agent=mine", "--mle-sandbox=process", *arguments)
    assert fnmatch(lines[0], f"ERROR: {message}")


def test_the_seeds_of_a_marker_are_bounded(session: Session) -> None:
    session.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.mle(seeds=100000)
        def test_it(mle_grade): pass
        """
    )
    result = session.run("--mle-agent=dummy", "test_the_seeds_of_a_marker_are_bounded.py")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        ["*with test_it, 100000 seeds on 6 competitions, this session has 600,000 attempts of *"]
    )


@pytest.mark.parametrize("key", ["mle_split", "mle_competition", "mle_seeds", "mle_report"])
def test_an_empty_value_of_the_ini_file_is_refused(session: Session, key: str) -> None:
    session.pytester.makeini(f"[pytest]\n{key} =\n")
    lines = refused(session, "--mle-agent=dummy")
    assert lines[0].startswith(f"ERROR: {key} in tox.ini is empty, as a variable that is not set")


def test_messages_name_what_was_written(session: Session) -> None:
    (session.path / "file").touch()
    session.pytester.makeini(
        "[pytest]\nmle_data_dir = file\nmle_runs_dir = file\nmle_budget = much\n"
        "mle_fail_under = low:600\nmle_fail_over = 5calls\nmle_fail_on = violation\n"
    )
    text = "\n".join(refused(session, "--mle-agent=dummy", "-o", "mle_seeds=none"))
    for words in (
        "mle_data_dir in tox.ini must be a folder, given: ",
        "mle_runs_dir in tox.ini must be a folder, given: file",
        "mle_budget in tox.ini must be 20usd",
        "mle_fail_under in tox.ini must be [SPLIT:]PERCENT",
        "mle_fail_over in tox.ini must be dollars",
        "mle_fail_on = violation in tox.ini has nothing to judge without --mle-audit=on",
        "-o mle_seeds must be a whole number",
    ):
        assert words in text
    assert WORKS not in text


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
