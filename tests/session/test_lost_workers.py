"""Workers that are lost: their items are tried again, the others notice nothing, no gate lies."""

from __future__ import annotations

import pytest
from plugin_session import Session

TWO = ("--mle-competition=demo-digits", "--mle-competition=demo-wine-cultivars")

# ends its worker by a signal, as often as there are lines in a file
FATAL = """
    import os, pathlib, signal
    LIVES = pathlib.Path(__file__).with_name("lives")

    def pytest_mle_before_run(job, run):
        lives = LIVES.read_text().split()
        if job.competition == "demo-digits" and lives:
            LIVES.write_text(" ".join(lives[1:]))
            os.kill(os.getpid(), signal.{signal})
"""


def fatal(session: Session, times: int, signal: str = "SIGKILL") -> None:
    session.pytester.makeconftest(FATAL.format(signal=signal))
    (session.path / "lives").write_text("x " * times)


@pytest.mark.parametrize("signal", ["SIGKILL", "SIGTERM", "SIGINT"])
@pytest.mark.parametrize("way", [("-n2",), ("--tx=2*popen", "--dist=load")])
def test_an_item_whose_worker_is_lost_is_tried_again(
    session: Session, signal: str, way: tuple[str, ...]
) -> None:
    fatal(session, 1, signal)
    result = session.alone("--mle-agent=dummy", *TWO, *way, "--mle-run=r")
    assert result.ret == pytest.ExitCode.OK, result.stdout.str()
    result.assert_outcomes(passed=2)
    phases = {name: record["phase"] for name, record in session.records("r").items()}
    assert phases["demo-digits/seed0/attempt2"] == "graded"
    assert phases["demo-wine-cultivars/seed0/attempt1"] == "graded"


def test_an_item_that_loses_its_worker_three_times_is_an_error(session: Session) -> None:
    fatal(session, 3)
    result = session.alone("--mle-agent=dummy", *TWO, "-n2", "--mle-run=r", "--mle-report=r.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["?/2  demo-digits seed0  error: benchmark*"])
    outcomes = {r["competition"]: r["outcome"] for r in session.report("r.json")["results"]}
    assert outcomes == {"demo-digits": "error", "demo-wine-cultivars": "graded"}
    assert len([name for name in session.records("r") if "digits" in name]) == 3


@pytest.mark.parametrize("way", [("-n2",), ("--tx=2*popen", "--dist=load")])
@pytest.mark.parametrize(
    ("moment", "status"),  # when what was to run is known, it is known to be missing
    [
        ("pytest_sessionstart", pytest.ExitCode.NO_TESTS_COLLECTED),
        ("pytest_collection_finish", pytest.ExitCode.TESTS_FAILED),
    ],
)
def test_workers_that_never_come_to_work_end_the_session_with_a_failure(
    session: Session, way: tuple[str, ...], moment: str, status: pytest.ExitCode
) -> None:
    session.pytester.makeconftest(
        f"""
        import os

        def {moment}(session):
            if hasattr(session.config, "workerinput"):
                os._exit(1)
        """
    )
    result = session.alone("--mle-agent=dummy", *TWO, *way)
    assert result.ret == status
    result.stdout.fnmatch_lines(["*is given up: it was lost too often*"])


def test_items_that_no_worker_was_left_for_fail_the_session(session: Session) -> None:
    fatal(session, 1)
    result = session.alone("--mle-agent=dummy", *TWO, "-n1", "--max-worker-restart=0")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["missed: *"])


def test_a_host_that_cannot_be_reached_is_refused_in_a_sentence(session: Session) -> None:
    spec = "ssh=-o ConnectTimeout=1 -o BatchMode=yes -p 1 127.0.0.1"
    result = session.alone("--mle-agent=dummy", TWO[0], f"--tx={spec}", "--dist=load")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: --tx: 1 of 1 hosts cannot take part:",
            "  127.0.0.1: cannot be reached: ssh: connect to host 127.0.0.1 port 1: *",
        ]
    )


@pytest.mark.parametrize("mode", ["each", "loadscope", "loadfile", "loadgroup"])
def test_modes_that_tie_items_to_workers_are_refused_by_name(session: Session, mode: str) -> None:
    result = session.alone("--mle-agent=dummy", TWO[0], "-n2", f"--dist={mode}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --dist={mode} cannot be honoured with --mle-agent*"])
