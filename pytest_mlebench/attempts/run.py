"""One competition with one seed: run the agent if it has not run yet, grade if not yet graded.

Each step leaves its result on disk before the next begins, so that a killed session resumes where
it was.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pytest_mlebench.agent import Agent
from pytest_mlebench.attempts.instructions import instructions
from pytest_mlebench.attempts.record import Run, Snapshot, attempts
from pytest_mlebench.dataset import Dataset
from pytest_mlebench.errors import InfrastructureError, MlebenchError, SandboxError
from pytest_mlebench.grade import Grade, grade_submission, no_submission
from pytest_mlebench.limits import Limits
from pytest_mlebench.sandbox import Job, Sandbox

TRIES = 3  # of an attempt that the benchmark itself spoils; an agent's failure is never repeated

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Attempt:
    """Everything that decides how an agent runs."""

    dataset: Dataset
    seed: int
    agent: Agent
    limits: Limits
    sandbox: Sandbox


def run_attempt(
    attempt: Attempt,
    folder: Path,
    *,
    network: str,
    snapshot_every: float | None = None,
    hidden: tuple[Path, ...],
    before: Callable[[Job, Run], object],
    after: Callable[[Job, Run], object],
) -> Run:
    """Return the finished run below a ``seed<k>`` folder, made now unless it is there."""
    from filelock import FileLock  # late on purpose: only when an agent runs

    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):  # two tests may want the same run at the same time
        done = attempts(folder)
        if done and done[-1].is_over:
            return done[-1]
        number = done[-1].attempt if done else 0
        for attempt_number in range(number + 1, number + TRIES + 1):
            run = _new_run(attempt, folder, attempt_number, network)
            job = _job(attempt, run, network, hidden)
            before(job, run)
            try:
                _run_once(attempt, job, run, snapshot_every)
            except SandboxError:
                if attempt_number == number + TRIES:
                    raise
                continue
            after(job, run)
            return run
    raise InfrastructureError(f"{folder}: no attempt was made")


def grade_run(run: Run, dataset: Dataset) -> Grade:
    """Return the grade of a finished run, recorded before it is returned."""
    if run.phase == "graded" and run.grade is not None:
        return run.grade
    competition, where = dataset.competition, str(run.folder)
    if run.submission.exists() or run.submission.is_symlink():
        grade = grade_submission(competition, run.submission, dataset.private, run=where)
    else:
        grade = no_submission(competition, _why_nothing(run), run=where)
    run.grade = grade
    if run.snapshots:
        run.snapshots = _grade_snapshots(run, dataset)
    run.enter("graded")
    return grade


def _new_run(attempt: Attempt, folder: Path, number: int, network: str) -> Run:
    place = folder / f"attempt{number}"
    if place.exists():  # an attempt without a readable record: a session was killed at its start
        shutil.rmtree(place)
    place.mkdir()
    run = Run(place, attempt.dataset.competition.id, attempt.seed, number, attempt.agent.name)
    run.conditions = {
        "agent_version": attempt.agent.version,
        "sandbox": attempt.sandbox.name,
        "network": network,
        "limits": attempt.limits.to_dict(),
        "host": socket.gethostname(),
        "data": attempt.dataset.verified,
    }
    run.enter("created")
    return run


def _job(attempt: Attempt, run: Run, network: str, hidden: tuple[Path, ...]) -> Job:
    competition = attempt.dataset.competition
    public = attempt.dataset.public

    def check(submission: Path) -> None:
        competition.check(submission, public)

    return Job(
        competition=competition.id,
        seed=attempt.seed,
        agent=attempt.agent,
        limits=attempt.limits,
        network=network,
        data=public,
        instructions=instructions(attempt.limits),
        folder=run.folder,
        check=check,
        hidden=hidden,
        labels={
            "run": run.folder.parents[2].name,
            "attempt": f"{run.competition}/seed{run.seed}/attempt{run.attempt}",
            "host": socket.gethostname(),
            "pid": str(os.getpid()),
        },
    )


def _run_once(attempt: Attempt, job: Job, run: Run, snapshot_every: float | None) -> None:
    try:
        with _leased(attempt, job, run) as job_with_gpus:
            run.enter("running")
            with _snapshots(job, run, snapshot_every):
                outcome = attempt.sandbox.run(job_with_gpus)
    except InfrastructureError as error:
        run.error = str(error)
        run.enter("error")
        raise
    except OSError as error:
        run.error = f"cannot write {run.folder}: {error.strerror or error}"
        _try_to_record(run)
        raise SandboxError(run.error) from error
    run.outcome = _plain(asdict(outcome))
    run.enter("collected")


@contextlib.contextmanager
def _leased(attempt: Attempt, job: Job, run: Run) -> Iterator[Job]:
    """Wait until the host has room for the attempt, and yield the job with its GPUs."""
    # late on purpose: only when an agent runs
    from pytest_mlebench.host.gpus import describe_gpus
    from pytest_mlebench.host.leases import lease_for

    def wait(message: str) -> None:
        logger.info("%s: %s", job.labels["attempt"], message)
        if run.phase != "waiting":
            run.enter("waiting")

    label = job.labels["attempt"]
    with lease_for(attempt.sandbox, job.limits, label=label, waiting=wait) as gpus:
        if gpus:
            run.conditions["gpus"] = describe_gpus(gpus)
        yield replace(job, gpus=gpus)


@contextlib.contextmanager
def _snapshots(job: Job, run: Run, every: float | None) -> Iterator[None]:
    """Keep the submission as it changes, if that is asked for."""
    if every is None:
        yield
        return
    from pytest_mlebench.sandbox.snapshots import Snapshots  # late on purpose: only if asked for

    with Snapshots(job, every) as snapshots:
        yield
    run.snapshots = snapshots.taken


def _grade_snapshots(run: Run, dataset: Dataset) -> list[Snapshot]:
    """Return the snapshots with their grades; trouble with one is told and spoils nothing else."""
    from pytest_mlebench.sandbox.snapshots import kept_file

    known: dict[str, Snapshot] = {}
    for snapshot in run.snapshots:
        if snapshot.sha256 not in known:
            file = kept_file(run.folder, snapshot)
            try:
                grade = grade_submission(dataset.competition, file, dataset.private)
            except MlebenchError as problem:
                grade = no_submission(dataset.competition, f"cannot be graded: {problem}")
            known[snapshot.sha256] = snapshot.graded(grade)
    return [replace(known[one.sha256], seconds=one.seconds) for one in run.snapshots]


def _try_to_record(run: Run) -> None:
    with contextlib.suppress(OSError):  # the disk that spoilt the attempt may not take its record
        run.enter("error")


def _why_nothing(run: Run) -> str:
    problem = run.outcome.get("problem") or "the agent left no submission.csv"
    reason, code = run.outcome.get("reason"), run.outcome.get("exit_code")
    if reason == "time-limit":
        return f"{problem}; it was stopped at the time limit"
    if reason == "memory-limit":
        return f"{problem}; it was stopped at the memory limit"
    if code:
        return f"{problem}; it ended with exit code {code}, see {run.log}"
    return str(problem)


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in data.items()}
