"""Checks and scores are made in a process of their own, behind walls; the session lives."""

from __future__ import annotations

import os
import shutil
import socket
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_pack import Pack, case_file
from peak_memory import peak_growth

from pytest_mlebench import InvalidSubmission, load_competition
from pytest_mlebench.attempts import grading_process
from pytest_mlebench.attempts.grading_process import check_apart, score_apart
from pytest_mlebench.competition import Competition, read_competition
from pytest_mlebench.errors import DatasetError, GraderError
from pytest_mlebench.sandbox.process import landlock, seccomp

SUBMISSION = "id,x\n1,0.5\n2,0.25\n"
WALLS = landlock.version() >= landlock.TRUNCATION and seccomp.available()
needs_walls = pytest.mark.skipif(not WALLS, reason="the kernel has no Landlock or no seccomp")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "answers.csv").write_text(SUBMISSION)
    (tmp_path / "submission.csv").write_text(SUBMISSION)
    return tmp_path


FACTS = f"""
title = "Own"
complexity = "custom"
category = "tables"
source = "local"
answers = "answers.csv"
sample = "sample.csv"

[submission]
id = "id"
targets = ["x"]

[metric]
name = "own"
direction = "lower"

[leaderboard]
teams = 10
gold = 1.0
silver = 2.0
bronze = 3.0
median = 50.0
percentiles = {[float(number) for number in range(101)]}
"""


def competition_with(grader: str, folder: Path) -> Competition:
    """Return a competition of one column whose grader has a body of its own."""
    own = folder / "competitions" / "own"
    own.mkdir(parents=True)
    (own / "competition.toml").write_text(FACTS)
    body = textwrap.indent(textwrap.dedent(grader), "    ")
    (own / "grade.py").write_text(f"def grade(submission, answers):\n{body}")
    return read_competition(own)


@pytest.mark.parametrize(
    "competition_id",
    [
        "3d-object-detection-for-autonomous-vehicles",
        "bms-molecular-translation",
        "dog-breed-identification",
    ],
)
def test_the_verdicts_are_those_of_the_same_process(competition_id: str, tmp_path: Path) -> None:
    pack, competition = Pack(competition_id), load_competition(competition_id)
    private, cases = pack.unpack("private", tmp_path), pack.unpack("cases", tmp_path)
    for case in pack.cases:
        file = case_file(cases, case)
        assert _verdict(score_apart, competition, file, private) == _verdict(
            Competition.score, competition, file, private
        )


def _verdict(score: Callable[[Competition, Path, Path], float], *arguments: Any) -> float | str:
    try:
        return score(*arguments)
    except InvalidSubmission as problem:
        return str(problem)


def test_a_check_is_made_against_the_sample(files: Path) -> None:
    competition = competition_with("return 1", files)
    shutil.copy(files / "answers.csv", files / competition.sample)
    check_apart(competition, files / "submission.csv", files)
    (files / "submission.csv").write_text("id,x\n1,0.5\n")
    with pytest.raises(InvalidSubmission, match=r"^1 row missing, for id 2$"):
        check_apart(competition, files / "submission.csv", files)


def test_lost_answers_are_the_stores_fault(files: Path) -> None:
    competition = competition_with("return 1", files)
    (files / "answers.csv").unlink()
    with pytest.raises(DatasetError, match=r"answers.csv is missing, prepare the dataset again"):
        score_apart(competition, files / "submission.csv", files)


@needs_walls
@pytest.mark.parametrize(
    "deed",
    [
        "open('{0}/new', 'w')",
        "open('{0}/answers.csv', 'a')",
        "os.truncate('{0}/answers.csv', 0)",
        "os.unlink('{0}/answers.csv')",
        "os.mkdir('{0}/folder')",
        "os.chmod('{0}/answers.csv', 0o600)",
        "os.utime('{0}/answers.csv')",
        "os.setxattr('{0}/answers.csv', 'user.x', b'x')",
        "os.kill(os.getppid(), signal.SIGTERM)",
        "socket.create_connection(('127.0.0.1', {1}))",
        "socket.socket(socket.AF_UNIX)",
        "socket.socketpair()",
    ],
)
def test_a_grader_changes_nothing_and_reaches_nobody(deed: str, files: Path) -> None:
    if "kill" in deed and landlock.version() < landlock.SIGNALS:
        pytest.skip("this Landlock does not stop signals")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done = deed.format(files, listener.getsockname()[1])
        competition = competition_with(
            f"""
            import os, signal, socket
            try:
                {done}
            except OSError:
                return 0
            return 1
            """,
            files,
        )
        before = (files / "answers.csv").stat()
        assert score_apart(competition, files / "submission.csv", files) == 0
    after = (files / "answers.csv").stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


@pytest.mark.parametrize(
    ("deed", "problem"),
    [
        ("os.kill(os.getpid(), 9)", "own: the process that grades was killed by SIGKILL: out of"),
        ("os.abort()", "own: the process that grades was killed by SIGABRT"),
        ("os._exit(3)", "own: the process that grades was ended without an answer"),
        ("bytearray(1 << 40)", "own: the grader failed: MemoryError"),
        ("raise SystemExit", "own: the grader failed: SystemExit"),
        ("1 / 0", "own: the grader failed: ZeroDivisionError"),
        ("[os.write(n, b'no answer') for n in range(3, 64)]", "killed|without an answer|OSError"),
    ],
)
def test_a_grader_that_dies_is_an_error_and_the_next_one_works(
    deed: str, problem: str, files: Path
) -> None:
    competition = competition_with(f"import os\n{deed}", files)
    with pytest.raises(GraderError, match=problem):
        score_apart(competition, files / "submission.csv", files)
    (competition.folder / "grade.py").write_text("def grade(submission, answers):\n    return 7\n")
    assert score_apart(competition, files / "submission.csv", files) == 7


def test_a_grader_that_never_ends_is_stopped(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading_process, "BASE_SECONDS", 1)
    competition = competition_with("while True: pass", files)
    with pytest.raises(GraderError, match="own: grading took more than 1 s and was stopped"):
        score_apart(competition, files / "submission.csv", files)


def test_memory_is_limited(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    competition = competition_with("return len(bytearray(300 << 20))", files)
    assert score_apart(competition, files / "submission.csv", files) == 300 << 20
    monkeypatch.setattr(grading_process, "BASE_BYTES", 200 << 20)
    with pytest.raises(GraderError, match="MemoryError"):
        score_apart(competition, files / "submission.csv", files)


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", [b"17000000,0.123\n", b'17000000,"0.1"\n'], ids=["plain", "quoted"]
)
def test_millions_of_rows_are_refused_before_they_are_parsed(files: Path, line: bytes) -> None:
    """In bounded time and memory; parsed, they would take ten times the file and more."""
    competition = competition_with("return 7", files)
    sample = files / competition.sample
    shutil.copy(files / "answers.csv", sample)
    honest, flood = files / "submission.csv", files / "flood.csv"
    flood.write_bytes(b"id,x\n" + line * 3_000_000)
    for verdict in (check_apart, score_apart):
        with pytest.raises(
            InvalidSubmission, match=r"^flood.csv has more than 1004 rows, expected 2"
        ):
            verdict(competition, flood, files)
        verdict(competition, honest, files)  # the session lives, and so does the server

    def check() -> None:
        with pytest.raises(InvalidSubmission):
            competition.check(flood, files)

    check()  # imports what it needs
    began = time.process_time()
    check()
    assert time.process_time() - began < 5
    assert peak_growth(check) < 3 * flood.stat().st_size


def test_nothing_that_a_grader_started_is_left(files: Path) -> None:
    competition = competition_with(
        """
        import os, time
        child = os.fork()
        if child == 0:
            os.setsid()
            time.sleep(1000)
        return child
        """,
        files,
    )
    child = int(score_apart(competition, files / "submission.csv", files))
    assert not Path(f"/proc/{child}").exists()


def test_a_server_that_was_killed_is_started_again(files: Path) -> None:
    competition = competition_with("import os\nreturn os.getppid()", files)
    first = int(score_apart(competition, files / "submission.csv", files))
    assert int(score_apart(competition, files / "submission.csv", files)) == first
    os.kill(first, 9)
    while Path(f"/proc/{first}/exe").exists():  # a zombie, which it may be for a while, has none
        pass
    second = int(score_apart(competition, files / "submission.csv", files))
    assert second != first


def test_keys_of_the_session_are_not_in_the_process(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "x")
    monkeypatch.setattr(grading_process, "_server", grading_process.GradingServer())
    competition = competition_with("import os\nreturn 'SECRET_KEY' in os.environ", files)
    assert score_apart(competition, files / "submission.csv", files) == 0
