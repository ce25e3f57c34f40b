"""The jobs of a run as squeue and sbatch tell of them; tests/machines has a real Slurm."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_mlebench.machines import slurm_jobs
from pytest_mlebench.machines.hosts_file import Machine
from pytest_mlebench.machines.slurm_jobs import AllocationRefused, SlurmJob, SlurmJobs, refusal

POOL = Machine("a100", (), srun=("-c2",))
Program = Callable[..., None]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Let a program of Slurm answer with a text, or fail with it."""
    monkeypatch.setattr(slurm_jobs, "LOOK_SECONDS", 0.0)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def answer(name: str, text: str, status: int = 0) -> None:
        stream = ">&2" if status else ""
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\ncat {stream} <<'TEXT'\n{text}\nTEXT\nexit {status}\n")
        path.chmod(0o755)

    return answer


def never(_seconds: float) -> bool:
    raise AssertionError("there is nothing to wait for")


def test_a_job_that_runs_is_known_with_the_node_of_its_holder(program: Program) -> None:
    program("squeue", "7|RUNNING|n1|a100\n8|PENDING|n/a|a100\n9|COMPLETING|n2|a100\n5|RUNNING|n3|b")
    jobs = SlurmJobs("run", 60)
    assert jobs.wait("7", never) == SlurmJob("7", "a100", "n1")
    assert jobs.existing("a100") == ["7", "8"], "one that is ending is nothing to come back to"


@pytest.mark.parametrize("number", ["6", "9"])
def test_a_job_that_has_ended_or_is_ending_is_not_waited_for(program: Program, number: str) -> None:
    program("squeue", "9|COMPLETING|n2|a100")
    assert SlurmJobs("run", 60).wait(number, never) is None


def test_a_slurm_that_does_not_answer_has_not_ended_anything(program: Program) -> None:
    program("squeue", "slurm_load_jobs error: Unable to contact slurm controller", 1)
    waited = []

    def pause(seconds: float) -> bool:
        waited.append(seconds)
        program("squeue", "7|RUNNING|n1|a100")
        return False

    assert SlurmJobs("run", 60).wait("7", pause) == SlurmJob("7", "a100", "n1")
    assert len(waited) == 1


def test_what_waits_for_a_job_ends_with_the_session(program: Program) -> None:
    program("squeue", "7|PENDING|n/a|a100")
    assert SlurmJobs("run", 60).wait("7", lambda _seconds: True) is None


def test_nothing_is_asked_for_after_the_end(program: Program) -> None:
    program("sbatch", "12;cluster")
    program("scancel", "")
    jobs = SlurmJobs("run", 60)
    assert jobs.submit(POOL) == "12"
    jobs.end()
    with pytest.raises(AllocationRefused, match="the session is ending"):
        jobs.submit(POOL)


def test_what_slurm_says_of_words_that_it_refuses_is_passed_on(program: Program) -> None:
    program("sbatch", "sbatch: error: Batch job submission failed: Invalid account", 1)
    assert refusal(POOL) == (
        "sbatch refuses srun = '-c2': error: Batch job submission failed: Invalid account"
    )
    with pytest.raises(AllocationRefused, match="Invalid account"):
        SlurmJobs("run", 60).submit(POOL)
