"""Which items a session has and how they are called."""

from __future__ import annotations

import pytest
from plugin_session import Session
from reporting import write_competition

ONE = "--mle-competition=demo-digits"


def test_without_paths_the_suite_alone_is_collected(session: Session) -> None:
    session.pytester.makepyfile("def test_unit(): pass")
    session.pytester.makeini("[pytest]\ntestpaths = .")
    items = session.collected("--mle-agent=dummy")
    assert len(items) >= 6
    assert all(item.startswith("mlebench::test_competition[demo-") for item in items)


def test_with_paths_exactly_those_are_collected(session: Session) -> None:
    session.pytester.makepyfile(test_unit="def test_unit(): pass")
    assert session.collected("--mle-agent=dummy", "test_unit.py") == ["test_unit.py::test_unit"]


def test_an_item_is_a_competition_and_a_seed(session: Session) -> None:
    assert session.collected("--mle-agent=dummy", ONE, "--mle-seeds=2") == [
        "mlebench::test_competition[demo-digits-seed0]",
        "mlebench::test_competition[demo-digits-seed1]",
    ]


def test_node_ids_can_be_pasted_back(session: Session) -> None:
    item = "mlebench::test_competition[spooky-author-identification-seed1]"
    arguments = ("--mle-agent=dummy", "--mle-split=lite", "--mle-seeds=3")
    assert session.collected(*arguments, item) == [item]


def test_items_are_chosen_by_keyword_and_by_marker(session: Session) -> None:
    assert session.collected("--mle-agent=dummy", "-k", "digits") == [
        "mlebench::test_competition[demo-digits-seed0]"
    ]
    assert len(session.collected("--mle-agent=dummy", "-m", "mle")) >= 6
    assert session.collected("--mle-agent=dummy", "-m", "not mle") == []


@pytest.mark.parametrize("options", [(), ("--collect-only",), ("-n", "1")])
def test_a_mistake_in_a_competition_shows_before_anything_runs(
    session: Session, options: tuple[str, ...]
) -> None:
    folder = write_competition(session.path / "competitions") / "tiny"
    path = folder / "competition.toml"
    path.write_text(path.read_text().replace("targets", "target").replace("teams", "teems"))
    session.pytester.makeini("[pytest]\nmle_competitions = competitions")
    result = session.run("--mle-agent=dummy", "--mle-competition=tiny", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: *tiny/competition.toml: 2 problems:",
            "  submission: targets is missing, did you mean 'target'?",
            "  leaderboard: teams is missing, did you mean 'teems'?",
        ]
    )


def test_the_ini_file_sets_what_the_command_line_does_not(session: Session) -> None:
    session.pytester.makeini(
        "[pytest]\nmle_split = dev\nmle_seeds = 2\nmle_competition =\n    demo-digits\n"
    )
    assert len(session.collected("--mle-agent=dummy")) == 16
    assert len(session.collected("--mle-agent=dummy", "--mle-seeds=1")) == 8


def test_an_agent_in_the_ini_file_leaves_a_plain_session_alone(session: Session) -> None:
    session.pytester.makeini("[pytest]\nmle_agent = dummy\n")
    session.pytester.makepyfile(test_unit="def test_unit(): pass")
    assert session.collected() == ["test_unit.py::test_unit"]
    assert session.collected(ONE) == ["mlebench::test_competition[demo-digits-seed0]"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mle-agent=dumy"], "unknown agent 'dumy', did you mean 'dummy'?"),
        (["--mle-split=lit"], "unknown split 'lit', did you mean 'lite'?"),
        (["--mle-split=no/such.txt"], "--mle-split names a file that does not exist: no/such.txt"),
        (
            ["--mle-competition=spooky-author"],
            "unknown competition 'spooky-author', did you mean 'spooky-author-identification'?",
        ),
        (["--mle-seeds=0"], "--mle-seeds must be at least 1, given: 0"),
        (["--mle-seeds=two"], "--mle-seeds must be a whole number, zero or more, given: two"),
        (
            ["--mle-require=best"],
            "--mle-require must be one of pass, median, bronze, silver, gold, given: best",
        ),
        (["--mle-fail-under=low"], "--mle-fail-under must be [SPLIT:]PERCENT such as low:60*"),
        (["--mle-fail-under=lo:60"], "unknown split in --mle-fail-under=lo:60: 'lo'*"),
        (
            ["--mle-sandbox=jail"],
            "--mle-sandbox must be one of auto, docker, process, rootless, given: jail",
        ),
        (["--mle-time-limit=soon"], "--mle-time-limit must be a duration such as 24h, 90m or 30s*"),
        (["--mle-cpus=-1"], "--mle-cpus must be a positive number, given: -1"),
        (["--mle-memory=lots"], "--mle-memory must be a size such as 440GB or 16GiB*"),
        (["--mle-gpus=half"], "--mle-gpus must be a whole number, zero or more, given: half"),
        (["--mle-network=some"], "--mle-network must be none, open or allow:HOST*given: some"),
        (["--mle-prepare=maybe"], "--mle-prepare must be one of auto, never, only, given: maybe"),
        (["--mle-missing=ignore"], "--mle-missing must be one of fail, skip, given: ignore"),
        (["--mle-verify=no"], "--mle-verify must be one of on, off, given: no"),
        (["--mle-report=x.pdf"], "--mle-report must end in .json .html .csv .md, given: *x.pdf"),
        (["--mle-run=../x"], "--mle-run must be a plain name, given: '../x'"),
    ],
    ids=lambda value: value[0].partition("=")[0] if isinstance(value, list) else "",
)
def test_a_wrong_value_is_a_usage_error_before_anything_runs(
    session: Session, arguments: list[str], message: str
) -> None:
    agent = [] if arguments[0].startswith("--mle-agent") else ["--mle-agent=dummy"]
    result = session.run(*agent, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message.replace('[', '[[]')}"])
    assert "Traceback" not in result.stderr.str()
    assert not (session.path / "mle-runs").exists()


def test_options_without_an_agent_are_a_usage_error(session: Session) -> None:
    result = session.run("--mle-split=lite")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --mle-split has no effect without --mle-agent=NAME"])


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("splt='demo'", "*has no keyword 'splt', did you mean 'split'?"),
        ("'demo'", "*takes keywords only, given: 'demo'"),
        ("competition='nope'", "unknown competition 'nope'*"),
        ("require='best'", "*require must be one of pass, median, bronze, silver, gold*"),
    ],
)
def test_a_wrong_marker_is_an_error_of_collection(
    session: Session, marker: str, message: str
) -> None:
    session.pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.mle({marker})
        def test_mine(mle_grade):
            pass
        """
    )
    result = session.run("--mle-agent=dummy", ".")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([message])
    assert "Traceback" not in result.stdout.str()
