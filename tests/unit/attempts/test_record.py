"""Records and plans come back as they were written, by this version or the first one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attempt_folders import IDENTITY, write_attempt, write_run
from reporting import graded

from pytest_mlebench.attempts.plan import read_plan
from pytest_mlebench.attempts.record import read_attempt, read_attempts
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.grade import Snapshot
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.limits import STANDARD
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import ItemKey

FIRST_VERSION = {
    "schema": 1,
    "competition": "AI4Code",
    "seed": 0,
    "attempt": 1,
    "agent": "mine",
    "phase": "graded",
    "error": None,
    "timings": {"created": 1.0, "running": 2.0, "collected": 9.5, "graded": 10.0},
    "outcome": {
        "reason": "exited",
        "exit_code": 0,
        "seconds": 7.5,
        "format_checks": 3,
        "peak_memory_bytes": 1000,
        "cpu_seconds": 0.5,
        "image": "sha256:1",
        "gpus": [],
        "problem": None,
        "details": {},
    },
    "conditions": {
        "agent_version": "1.2",
        "sandbox": "docker",
        "network": "none",
        "limits": STANDARD.to_dict(),
        "host": "gpu1",
        "data": "checksums",
    },
    "snapshots": [],
}


def first_version(folder: Path) -> Path:
    """Write a record as the first version did."""
    attempt = folder / "AI4Code/seed0/attempt1"
    attempt.mkdir(parents=True)
    grade = graded("AI4Code").grade
    data = FIRST_VERSION | {"grade": None if grade is None else grade.to_dict()}
    (attempt / "record.json").write_text(json.dumps(data))
    return attempt


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    snapshots = (Snapshot(1.5, "ab", 3), Snapshot(2.5, "cd", 4, problem="no rows"))
    grade = graded("AI4Code").grade
    run = write_attempt(
        folder, "AI4Code", 0, "graded", grade=grade, snapshots=snapshots, extra={"cost": 3}
    )
    again = read_attempt(run.folder)
    assert again is not None
    assert again.record == run.record
    assert (again.outcome["seconds"], again.is_over) == (7.5, True)


def test_a_record_that_has_changed_is_read_anew(tmp_path: Path) -> None:
    run = write_attempt(RunFolder(tmp_path), "AI4Code", 0, "collected")
    kept = read_attempt(run.folder)
    run.enter("graded", grade=graded("AI4Code").grade)
    changed = read_attempt(run.folder)
    assert kept is not None
    assert changed is not None
    assert (kept.phase, changed.phase) == ("collected", "graded")
    (run.folder / "record.json").write_text('{"schema": 99}')
    with pytest.raises(ConfigError, match="has schema 99"):
        read_attempt(run.folder)


def test_a_folder_without_a_record_is_no_attempt_and_stays(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    write_attempt(folder, "AI4Code", 0, "graded", grade=graded("AI4Code").grade)
    seed = folder.seed("AI4Code", 0)
    seed.attempt(2).path.mkdir()
    assert [run.attempt for run in read_attempts(seed)] == [1]
    assert seed.next_attempt().number == 3


def test_a_record_of_the_first_version_is_read(tmp_path: Path) -> None:
    run = read_attempt(first_version(tmp_path))
    assert run is not None
    assert (run.phase, run.record.fingerprint, run.record.item) == ("graded", None, None)
    assert run.record.conditions.limits == STANDARD
    assert run.ending is not None
    assert run.ending.image == "sha256:1"


def test_a_run_of_the_first_version_is_reported(tmp_path: Path) -> None:
    first_version(tmp_path)
    disclosure = {"agent": "mine", "splits": ["low"], "seeds": 2, "require": "bronze"}
    plan = {"schema": 1, "expected": [["AI4Code", 0], ["AI4Code", 1]], "disclosure": disclosure}
    (tmp_path / "run.json").write_text(json.dumps(plan))
    report = Report.from_run(tmp_path)
    assert [(r.agent, r.seed, r.status) for r in report.results] == [
        ("mine", 0, "graded"),
        ("mine", 1, "missing"),
    ]
    read = read_plan(RunFolder(tmp_path))
    assert (read.splits, read.seeds, read.require, read.identity) == (("low",), 2, "bronze", None)


def test_a_plan_comes_back_as_it_was(tmp_path: Path) -> None:
    folder = write_run(
        tmp_path,
        ("AI4Code", 0),
        splits=("low",),
        competitions=("demo-digits",),
        tests=("tests/test_agent.py",),
        gates=("low:60",),
        limits={"time": "2h"},
        network="none",
        sandbox="docker",
        verify=False,
    )
    plan = read_plan(folder)
    assert (plan.splits, plan.limits, plan.identity) == (("low",), {"time": "2h"}, IDENTITY)
    assert (plan.gates, plan.network, plan.verify) == (("low:60",), "none", False)
    assert plan.expecting([ItemKey("AI4Code", 0, "mine"), ItemKey("x", 1)]).expected == (
        ItemKey("AI4Code", 0, "mine"),
        ItemKey("x", 1),
    )


@pytest.mark.parametrize("name", ["seed1/attempt2", "seed/attempt1", "seed1/attempt"])
def test_only_numbered_folders_are_attempts(tmp_path: Path, name: str) -> None:
    (tmp_path / "AI4Code" / name).mkdir(parents=True)
    found = [a.number for seed in RunFolder(tmp_path).seeds() for a in seed.attempts()]
    assert found == ([2] if name == "seed1/attempt2" else [])
