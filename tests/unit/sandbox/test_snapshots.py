"""Snapshots of a submission while an agent is at work."""

from __future__ import annotations

import ast
import hashlib
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from sandbox_job import Place, wait_until

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.grade import Snapshot
from pytest_mlebench.layout import AttemptFolder
from pytest_mlebench.sandbox import Job, snapshots
from pytest_mlebench.sandbox.collect import read_submission
from pytest_mlebench.sandbox.process.process_sandbox import ProcessSandbox
from pytest_mlebench.sandbox.snapshots import Snapshots, parse_every

EVERY = 0.1


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job whose workspace the test itself lays out and writes to."""
    job = Place(tmp_path).job(shell="true")
    (job.folder / "home" / "submission").mkdir(parents=True)
    return job


def submission(job: Job) -> Path:
    return job.folder / "home" / "submission" / "submission.csv"


def write(job: Job, text: str) -> None:
    """Replace the submission at one stroke."""
    fresh = job.folder / "fresh"
    fresh.write_text(text)
    fresh.replace(submission(job))


def contents(job: Job, taken: list[Snapshot]) -> list[str]:
    return [AttemptFolder(job.folder).snapshot(snapshot.sha256).read_text() for snapshot in taken]


def test_each_change_is_kept_once_and_in_order(job: Job) -> None:
    with Snapshots(job, EVERY) as kept:
        for number, text in enumerate(["one", "two", "one"]):
            write(job, text)
            assert wait_until(lambda number=number: len(kept.taken) > number)
        write(job, "one")  # touched, but the same
        time.sleep(4 * EVERY)
    assert contents(job, kept.taken) == ["one", "two", "one"]
    assert kept.taken[0].sha256 == hashlib.sha256(b"one").hexdigest()
    assert [one.seconds for one in kept.taken] == sorted(one.seconds for one in kept.taken)
    assert len([*(job.folder / "snapshots").iterdir()]) == 2


def test_without_a_submission_nothing_is_kept(job: Job) -> None:
    with Snapshots(job, EVERY) as kept:
        time.sleep(3 * EVERY)
    assert kept.taken == []


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder", "large", "linked folder"])
def test_what_an_agent_puts_in_its_place_is_not_read(job: Job, tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "store" / "tiny" / "prepared" / "private" / "answers.csv"
    path = submission(job)
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "hard link":
        os.link(secret, path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "large":
        with path.open("wb") as file:
            file.truncate(job.limits.submission_bytes + 1)
    else:
        path.parent.rmdir()
        path.parent.symlink_to(secret.parent)
        secret.rename(secret.parent / "submission.csv")
    with Snapshots(job, EVERY) as kept:
        time.sleep(4 * EVERY)
    assert kept.taken == []
    assert not (job.folder / "snapshots").exists()


def test_a_file_that_is_being_written_is_not_kept_half(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission(job).write_text("id,y\n")
    looks = threading.Semaphore(0)

    def read_while_it_grows(*arguments: Any) -> str | None:
        refused = read_submission(*arguments)
        with submission(job).open("a") as file:
            file.write("1,2\n")
        looks.release()
        return refused

    monkeypatch.setattr(snapshots, "read_submission", read_while_it_grows)
    monkeypatch.setattr(snapshots, "_PAUSE", 0.01)
    with Snapshots(job, EVERY) as kept:
        for _ in range(5):
            assert looks.acquire(timeout=60)
    assert kept.taken == []
    assert not (job.folder / "snapshots").exists()


def test_number_and_size_are_bounded(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "MAX_SNAPSHOTS", 2)
    with Snapshots(job, 0.02) as kept:
        for number in range(5):
            write(job, f"{number}")
            time.sleep(0.15)
    assert len(kept.taken) == 2


def test_all_snapshots_together_are_no_larger_than_the_artefacts_may_be(tmp_path: Path) -> None:
    job = Place(tmp_path).job(shell="true", artefact_bytes=100)
    (job.folder / "home" / "submission").mkdir(parents=True)
    with Snapshots(job, 0.02) as kept:
        for number in range(4):
            write(job, f"{number}" * 40)
            time.sleep(0.15)
    assert [text[0] for text in contents(job, kept.taken)] == ["0", "1"]


def test_an_agent_at_work_sees_nothing_of_its_snapshots(tmp_path: Path) -> None:
    program = """
import os, pathlib, time
path = pathlib.Path(os.environ["SUBMISSION_DIR"], "submission.csv")
for number in range(3):
    path.with_name("new").write_text(f"id,label\\n{number},0\\n")
    path.with_name("new").rename(path)
    time.sleep(1)
print(sorted(os.listdir(path.parent)))
try:
    print(sorted(os.listdir(path.parents[2])))
except OSError as problem:
    print("nothing")
"""
    job = Place(tmp_path).job(python=program)
    with Snapshots(job, 0.2) as kept:
        outcome = ProcessSandbox(grace_seconds=0.3).run(job)
    assert outcome.exit_code == 0
    assert [text[9] for text in contents(job, kept.taken)] == ["0", "1", "2"]
    listed, other = job.log.read_text().splitlines()
    assert listed == "['submission.csv']"
    assert "snapshot" not in other
    assert other == "nothing" or "home" in other
    if "home" in other:
        assert set(ast.literal_eval(other)) <= {"home", "run.log", "record.json"} | {
            name for name in ast.literal_eval(other) if name.startswith(".validator.")
        }


def test_the_pause_between_snapshots_is_checked() -> None:
    assert parse_every("30m", "--mle-snapshot-every") == 1800
    with pytest.raises(ConfigError) as problem:
        parse_every("0.5s", "--mle-snapshot-every")
    assert str(problem.value) == "--mle-snapshot-every must be 1s or more, given: 0.5s"
