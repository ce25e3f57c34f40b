"""Grading an attempt that is over: its submission, and the snapshots of it on the way."""

from __future__ import annotations

from dataclasses import replace

from pytest_mlebench.attempts.grading_process import score_apart
from pytest_mlebench.attempts.record import AttemptRecord, Run
from pytest_mlebench.dataset import Dataset
from pytest_mlebench.errors import MlebenchError
from pytest_mlebench.grade import Grade, Snapshot, grade_submission, no_submission
from pytest_mlebench.layout import AttemptFolder

_STOPPED = {
    "time-limit": "it was stopped at the time limit",
    "memory-limit": "it was stopped at the memory limit",
    "disk-limit": "it was stopped at the limit of disk space, or filled the disk",
    "files-limit": "it was stopped at the limit of files, or used up the disk's inodes",
    "process-limit": "it was stopped at the limit of processes",
    "sandbox-lost": "its sandbox was lost while it ran, which is no reason for another try",
}


def grade_run(run: Run, dataset: Dataset) -> Grade:
    """Return the grade of a finished attempt, recorded before it is returned."""
    if run.phase == "graded" and run.grade is not None:
        return run.grade
    return grade_again(run, dataset)


def grade_again(run: Run, dataset: Dataset) -> Grade:
    """Grade a finished attempt, whether or not it has a grade."""
    competition, where = dataset.competition, str(run.folder)
    if run.submission.exists() or run.submission.is_symlink():
        grade = grade_submission(
            competition, run.submission, dataset.private, run=where, score=score_apart
        )
    else:
        grade = no_submission(competition, _why_nothing(run.record, str(run.log)), run=where)
    run.enter("graded", grade=grade, snapshots=_graded_snapshots(run, dataset))
    return run.record.grade or grade  # as it is recorded: without any secret


def _graded_snapshots(run: Run, dataset: Dataset) -> tuple[Snapshot, ...]:
    """Return the snapshots with their grades; trouble with one is noted and spoils nothing else."""
    known: dict[str, Snapshot] = {}
    for snapshot in run.record.snapshots:
        if snapshot.sha256 not in known:
            file = AttemptFolder(run.folder).snapshot(snapshot.sha256)
            try:
                grade = grade_submission(
                    dataset.competition, file, dataset.private, score=score_apart
                )
            except MlebenchError as problem:
                grade = no_submission(dataset.competition, f"cannot be graded: {problem}")
            known[snapshot.sha256] = snapshot.graded(grade)
    return tuple(replace(known[one.sha256], seconds=one.seconds) for one in run.record.snapshots)


def _why_nothing(record: AttemptRecord, log: str) -> str:
    ending = record.ending
    problem = (ending and ending.problem) or "the agent left no submission.csv"
    if ending is not None and ending.reason in _STOPPED:
        return f"{problem}; {_STOPPED[ending.reason]}"
    if ending is not None and ending.exit_code:
        return f"{problem}; it ended with exit code {ending.exit_code}, see {log}"
    return problem
