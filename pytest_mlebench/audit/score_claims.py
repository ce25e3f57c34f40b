"""Claims about scores: every submission of a bundle, and every snapshot, graded anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pytest_mlebench._files import sha256
from pytest_mlebench.audit.claims import Claim
from pytest_mlebench.audit.regrade import Regraded, plain
from pytest_mlebench.grade import Grade, Snapshot
from pytest_mlebench.layout import AttemptFolder
from pytest_mlebench.reports.results import Result


def gradable(result: Result) -> Iterator[tuple[str, Path]]:
    """Yield the submission of a result and the snapshots of it, each with its key."""
    attempt = AttemptFolder(Path(result.run or ""))
    yield _key(result), attempt.submission
    for snapshot in result.snapshots:
        path = attempt.snapshot(snapshot.sha256)
        # a name that is no sum would lead elsewhere
        if path.parent == attempt.snapshots and path.is_file() and sha256(path) == snapshot.sha256:
            yield _key(result, snapshot), path


def _key(result: Result, snapshot: Snapshot | None = None) -> str:
    which = "" if snapshot is None else f" {snapshot.sha256}"
    return f"{result.competition} seed {result.seed} {Path(result.run or '').name}{which}"


def score_claim(result: Result, graded: dict[str, Regraded]) -> Claim:
    name = f"{result.competition} seed {result.seed}"
    claimed, done = result.grade, graded.get(_key(result))
    if claimed is None:
        return Claim(name, "holds", f"no grade is claimed: {result.status}")
    if done is None:
        if claimed.valid:
            return Claim(name, "fails", f"claims {claimed.score}, but there is no submission")
        return Claim(name, "holds", "no valid submission, as claimed")
    if done.grade is None:
        return Claim(name, "unchecked", done.problem or "not graded")
    return _compare(name, claimed, done.grade)


def snapshot_claims(result: Result, graded: dict[str, Regraded]) -> Iterator[Claim]:
    """Judge what the submissions on the way are said to have earned, if any were kept."""
    if not result.snapshots:
        return
    name = f"{result.competition} seed {result.seed} snapshots"
    wrong, unknown = [], []
    for snapshot in result.snapshots:
        done = graded.get(_key(result, snapshot))
        if done is None:
            wrong.append(f"{snapshot.sha256[:8]} is not there")
        elif done.grade is None:
            unknown.append(done.problem or "not graded")
        elif (anew := snapshot.graded(done.grade)) != snapshot:
            wrong.append(f"{snapshot.sha256[:8]}: {snapshot.score} claimed, {anew.score} found")
    if wrong:
        yield Claim(name, "fails", "; ".join(wrong[:5]))
    elif unknown:
        yield Claim(name, "unchecked", unknown[0])
    else:
        yield Claim(name, "holds", f"{len(result.snapshots)} graded, as claimed")


def _compare(name: str, claimed: Grade, found: Grade) -> Claim:
    mine, theirs = plain(found), plain(claimed)
    if mine == theirs or (not claimed.valid and not found.valid):
        text = f"{found.score}, {found.medal}" if found.valid else "not valid"
        return Claim(name, "holds", f"{text}, as claimed")
    differences = [
        f"{key} {theirs[key]} claimed, {mine[key]} found"
        for key in mine
        if mine[key] != theirs[key]
    ]
    return Claim(name, "fails", "; ".join(differences))


def with_grade(result: Result, graded: dict[str, Regraded]) -> Result:
    done = graded.get(_key(result)) if result.run is not None else None
    if done is None or done.grade is None or result.grade is None:
        return result
    status: Literal["graded", "failed"] = "graded" if done.grade.valid else "failed"
    return replace(result, grade=done.grade, status=status)
