"""A bundle verified: every claim of it, with a verdict; the bundle is hostile until then."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pytest_mlebench.archives.entries import ArchiveEntry, check_entries
from pytest_mlebench.archives.unzip import Unpacking, checked_members
from pytest_mlebench.audit.bundle import (
    CLAIMS,
    MANIFEST,
    RUN,
    SIGNATURE,
    Manifest,
    read_manifest,
    relative_report,
    sha256,
)
from pytest_mlebench.audit.regrade import Notes, Regraded, Task, plain, regrade
from pytest_mlebench.audit.signature import check
from pytest_mlebench.errors import ConfigError, MlebenchError, PreparationError
from pytest_mlebench.grade import Grade, Snapshot
from pytest_mlebench.layout import AttemptFolder, RunFolder
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.formats.json_file import load_json
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import Result

Verdict = Literal["holds", "fails", "unchecked"]
Sums = dict[str, tuple[str, int]]  # path: sha256 and size
UNNEEDED = ("/artefacts/", "/run.log", "/stats.jsonl")  # hashed, not graded
_MALFORMED = (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError)
NOTES = ".verify"  # in the store: what an interrupted verification has graded already


@dataclass(frozen=True)
class Claim:
    """One claim of a bundle, and what became of it."""

    name: str
    verdict: Verdict
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return the claim in JSON types."""
        return asdict(self)


@dataclass(frozen=True)
class Request:
    """What to verify, on which data, and whose signature is expected."""

    bundle: Path
    registry: Registry
    store: Path
    jobs: int = 1
    signers: Path | None = None  # a file of allowed signers, ssh-keygen(1)
    signer: str = ""
    progress: Callable[[int, int], object] = lambda done, of: None


def verify(request: Request) -> list[Claim]:
    """Return a verdict on every claim; what is no bundle at all is a ConfigError."""
    bundle = request.bundle
    if not bundle.is_file():
        raise ConfigError(f"{bundle}: there is no such file")
    with tempfile.TemporaryDirectory(prefix="mlebench-verify.") as scratch:
        folder = Path(scratch)
        sums = _unpack(bundle, folder)
        return list(_claims(request, folder, sums))


def exit_status(claims: list[Claim]) -> int:
    """Return 0 only if every claim holds: 1 if one fails, 3 if some could not be checked."""
    verdicts = {claim.verdict for claim in claims}
    return 1 if "fails" in verdicts else 3 if "unchecked" in verdicts else 0


def _unpack(bundle: Path, folder: Path) -> Sums:
    """Return sum and size of every member; of what is not needed, nothing is written."""
    try:
        members = checked_members(bundle)
        check_entries(bundle, map(_entry, members), folder)
        if MANIFEST not in {info.filename for info in members}:
            raise ConfigError(f"{bundle}: not a bundle of pytest-mlebench (no {MANIFEST})")
        with bundle.open("rb") as file:
            packed = Unpacking(bundle, file.fileno(), folder, check=True)
            return {
                info.filename: _copy(packed.blocks(info), info.filename, folder) for info in members
            }
    except PreparationError as error:  # names the file itself
        raise ConfigError(str(error)) from None


def _entry(info: zipfile.ZipInfo) -> ArchiveEntry:
    mode = info.external_attr >> 16
    return ArchiveEntry(info.filename, info.file_size, mode if stat.S_IFMT(mode) else stat.S_IFREG)


def _copy(blocks: Iterable[bytes | memoryview], name: str, folder: Path) -> tuple[str, int]:
    """Hash a member, and write it down if a claim is judged by it."""
    digest, size = hashlib.sha256(), 0
    needed = not any(part in f"/{name}" for part in UNNEEDED)
    target = folder / name if needed else Path(os.devnull)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as out:
        for block in blocks:
            digest.update(block)
            size += len(block)
            out.write(block)
    return digest.hexdigest(), size


def _claims(request: Request, folder: Path, sums: Sums) -> Iterator[Claim]:
    try:
        manifest = read_manifest(folder)
    except ConfigError as error:
        yield Claim("manifest", "fails", str(error))
        return
    yield Claim("manifest", "holds", f"written {manifest.created}, {len(manifest.files)} files")
    yield _files(sums, manifest)
    yield _signature(request, folder)
    try:
        claimed = Report.read(folder / CLAIMS, request.registry)
        raw = load_json(folder / CLAIMS)
        found = Report.from_run(folder / RUN, request.registry)
    except (MlebenchError, *_MALFORMED) as error:
        text = f"{type(error).__name__}: {error}" if isinstance(error, _MALFORMED) else str(error)
        yield Claim("records", "fails", f"cannot be read: {text}".replace(f"{folder}/", ""))
        return
    yield _attempts(folder)
    yield _records(claimed, relative_report(found, folder / RUN))
    graded = _regrade(request, found)
    for result in found.results:
        if result.run is not None:
            yield _score(result, graded)
            yield from _snapshots(result, graded)
    anew = replace(found, results=tuple(_with_grade(result, graded) for result in found.results))
    yield _rates(raw, anew)
    yield _comparability(raw, anew)


def _files(sums: Sums, manifest: Manifest) -> Claim:
    """Compare every file with its sum; nothing may be missing, nothing may be there beside."""
    there = sums.keys() - {MANIFEST, SIGNATURE}
    wrong = [f"{name} is not in the bundle" for name in manifest.files if name not in there]
    wrong += [f"{name} is not in the manifest" for name in sorted(there - set(manifest.files))]
    wrong += [
        f"{name} was changed"
        for name, facts in manifest.files.items()
        if name in there and sums[name] != facts
    ]
    if wrong:
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        return Claim("files", "fails", "; ".join(wrong[:5]) + more)
    return Claim("files", "holds", f"{len(manifest.files)} files have the sums of the manifest")


def _signature(request: Request, folder: Path) -> Claim:
    signature = folder / SIGNATURE
    if not signature.is_file():
        if request.signers is None:
            return Claim("signature", "holds", "none is claimed")
        return Claim("signature", "fails", f"the bundle is not signed, {request.signer!r} expected")
    try:
        text = check(folder / MANIFEST, signature, request.signers, request.signer)
    except ConfigError as error:
        return Claim("signature", "fails", str(error))
    return Claim("signature", "holds", text)


def _attempts(folder: Path) -> Claim:
    """Look for attempts that were taken out: their numbers leave no gap."""
    gaps = []
    count = 0
    for seed in RunFolder(folder / RUN).seeds():
        numbers = [attempt.number for attempt in seed.attempts()]
        count += len(numbers)
        lost = sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers))
        gaps += [f"{seed.path.relative_to(folder / RUN)}/attempt{number}" for number in lost]
    if gaps:
        return Claim("attempts", "fails", f"not in the bundle: {', '.join(gaps)}")
    return Claim("attempts", "holds", f"{count} attempts, none left out")


def _records(claimed: Report, found: Report) -> Claim:
    """Compare the results that are claimed with those that the records tell of."""
    mine = {result.key: result.to_dict() for result in found.results}
    theirs = {result.key: result.to_dict() for result in claimed.results}
    wrong = [
        f"{key.competition} seed {key.seed}"
        for key in dict.fromkeys((*theirs, *mine))
        if mine.get(key) != theirs.get(key)
    ]
    if wrong:
        return Claim("records", "fails", f"the records tell otherwise of {', '.join(wrong[:5])}")
    return Claim("records", "holds", f"{len(mine)} results are those of plan and records")


def _regrade(request: Request, found: Report) -> dict[str, Regraded]:
    files = {
        key: (result.competition, path)
        for result in found.results
        if result.run is not None and result.grade is not None
        for key, path in _gradable(result)
        if path.is_file()
    }
    roots = request.registry.roots[1:]  # the built-in ones are there anyway
    tasks = [
        Task(key, competition, path, request.store, roots)
        for key, (competition, path) in files.items()
    ]
    notes = Notes(request.store / NOTES / f"{sha256(request.bundle)}.jsonl")
    graded = regrade(tasks, request.jobs, notes, request.progress)
    if all(each.grade is not None for each in graded.values()):
        notes.forget()
    return graded


def _gradable(result: Result) -> Iterator[tuple[str, Path]]:
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


def _score(result: Result, graded: dict[str, Regraded]) -> Claim:
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


def _snapshots(result: Result, graded: dict[str, Regraded]) -> Iterator[Claim]:
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


def _with_grade(result: Result, graded: dict[str, Regraded]) -> Result:
    done = graded.get(_key(result)) if result.run is not None else None
    if done is None or done.grade is None or result.grade is None:
        return result
    status: Literal["graded", "failed"] = "graded" if done.grade.valid else "failed"
    return replace(result, grade=done.grade, status=status)


def _rates(raw: dict[str, Any], anew: Report) -> Claim:
    """Compare the rates to the last digit."""
    mine = json.loads(json.dumps([row.to_dict() for row in anew.rates]))
    theirs = raw.get("rates")
    if mine == theirs:
        rows = ", ".join(f"{row.name} {row.rates['any_medal'].text()}" for row in anew.rates)
        return Claim("rates", "holds", rows)
    known = {_name(row): row for row in theirs or () if isinstance(row, dict)}
    wrong = [_name(row) for row in mine if known.get(_name(row)) != row]
    return Claim("rates", "fails", f"the scores give other rates for {', '.join(wrong) or 'some'}")


def _name(row: dict[str, Any]) -> str:
    return f"{row.get('agent', '')} {row.get('split', '')}".strip()


def _comparability(raw: dict[str, Any], anew: Report) -> Claim:
    mine = json.loads(json.dumps(anew.comparability.to_dict()))
    if mine == raw.get("comparability"):
        return Claim("conditions", "holds", anew.comparability.sentence)
    return Claim("conditions", "fails", f"the records say: {anew.comparability.sentence}")
