"""A bundle verified: every claim of it, with a verdict; the bundle is hostile until then."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_mlebench._files import sha256
from pytest_mlebench.archives.entries import ArchiveEntry, check_entries
from pytest_mlebench.archives.unzip import Unpacking, checked_members
from pytest_mlebench.audit.attempt_files import AttemptFiles
from pytest_mlebench.audit.audit_claim import audit_claim
from pytest_mlebench.audit.audit_run import files_of
from pytest_mlebench.audit.bundle import (
    CLAIMS,
    MANIFEST,
    RUN,
    SIGNATURE,
    Manifest,
    read_manifest,
    relative_report,
)
from pytest_mlebench.audit.claims import (
    Claim,
    Sums,
    attempts_claim,
    conditions_claim,
    files_claim,
    kept_claim,
    rates_claim,
    records_claim,
    text_claims,
)
from pytest_mlebench.audit.regrade import Notes, Pool, Regraded, Task, grading_processes, regrade
from pytest_mlebench.audit.score_claims import gradable, score_claim, snapshot_claims, with_grade
from pytest_mlebench.audit.signature import check
from pytest_mlebench.errors import ConfigError, MlebenchError, PreparationError
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.formats.json_file import load_json
from pytest_mlebench.reports.report import Report

if TYPE_CHECKING:
    from pytest_mlebench.grade import Scorer

_MALFORMED = (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError)
MIN_SHARED_BYTES = 128 << 10
MEMORY = Path("/dev/shm")  # files there are in memory, and need no disk that makes thousands
MAX_MEMORY_BYTES, MEMORY_PARTS = 1 << 30, 8  # of a bundle there, and of what is free for it
NOTES = ".verify"  # in the store: what an interrupted verification has graded already


@dataclass(frozen=True)
class Request:
    """What to verify, on which data, and whose signature is expected."""

    bundle: Path
    registry: Registry
    store: Path
    score: Scorer  # behind walls: the files of a bundle are hostile
    start_early: Callable[[], object]  # what a process that scores can do before it has a file
    jobs: int = 1
    signers: Path | None = None  # a file of allowed signers, ssh-keygen(1)
    signer: str = ""
    progress: Callable[[int, int], object] = lambda done, of: None


def verify(request: Request) -> list[Claim]:
    """Return a verdict on every claim; what is no bundle at all is a ConfigError."""
    bundle = request.bundle
    if bundle.is_dir():
        raise ConfigError(f"{bundle}: a folder, not a bundle: pytest-mlebench bundle packs a run")
    if not bundle.is_file():
        raise ConfigError(f"{bundle}: there is no such file")
    members = _members(bundle)
    place = scratch_place(sum(info.file_size for info in members))
    with (
        grading_processes(request.jobs, request.start_early) as pool,
        tempfile.TemporaryDirectory(prefix="mlebench-verify.", dir=place) as scratch,
    ):
        folder = Path(scratch)
        sums = _unpack(bundle, members, folder, request.jobs)
        return list(_claims(request, folder, sums, pool))


def scratch_place(size: int, memory: Path = MEMORY) -> Path | None:
    """Return a folder in memory where *size* is little there; None for the usual folder."""
    if "TMPDIR" in os.environ or size > MAX_MEMORY_BYTES or not memory.is_dir():
        return None
    free = min(_available_memory(), shutil.disk_usage(memory).free)
    return memory if MEMORY_PARTS * size <= free else None


def _available_memory() -> int:
    """Return how many bytes may be used before anything is swapped out (man 5 proc, meminfo)."""
    with Path("/proc/meminfo").open(encoding="ascii") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvail"))


def _members(bundle: Path) -> list[zipfile.ZipInfo]:
    try:
        return checked_members(bundle)
    except PreparationError as error:  # names the file itself
        raise ConfigError(str(error)) from None


def _unpack(bundle: Path, members: Sequence[zipfile.ZipInfo], folder: Path, jobs: int) -> Sums:
    """Unpack every member and return its sum and size; what is on disk then has these sums."""
    try:
        check_entries(bundle, map(_entry, members), folder)
        if MANIFEST not in {info.filename for info in members}:
            raise ConfigError(f"{bundle}: not a bundle of pytest-mlebench (no {MANIFEST})")
        for parent in {(folder / info.filename).parent for info in members}:
            parent.mkdir(parents=True, exist_ok=True)
        with bundle.open("rb") as file:
            packed = Unpacking(bundle, file.fileno(), folder, check=True)
            return _copy_all(packed, members, folder, jobs)
    except PreparationError as error:  # names the file itself
        raise ConfigError(str(error)) from None
    except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        name = Path(error.filename).relative_to(folder)
        raise ConfigError(f"{bundle}: refused, two members of it are written to {name}") from None


def _copy_all(
    packed: Unpacking, members: Sequence[zipfile.ZipInfo], folder: Path, jobs: int
) -> Sums:
    """Write all members down, large ones in threads: those wait for one another at small files."""

    def copy(info: zipfile.ZipInfo) -> tuple[str, int]:
        return _copy(packed.blocks(info), folder / info.filename)

    with ThreadPoolExecutor(max(1, jobs - 1)) as pool:
        large = [info for info in members if jobs > 1 and info.file_size >= MIN_SHARED_BYTES]
        futures = {info.filename: pool.submit(copy, info) for info in large}
        small = {info.filename: copy(info) for info in members if info.filename not in futures}
        return small | {name: future.result() for name, future in futures.items()}


def _entry(info: zipfile.ZipInfo) -> ArchiveEntry:
    mode = info.external_attr >> 16
    return ArchiveEntry(info.filename, info.file_size, mode if stat.S_IFMT(mode) else stat.S_IFREG)


def _copy(blocks: Iterable[bytes | memoryview], target: Path) -> tuple[str, int]:
    """Write a member down, over nothing that is there, and return its sum and size."""
    digest, size = hashlib.sha256(), 0
    with target.open("xb") as out:
        for block in blocks:
            digest.update(block)
            size += len(block)
            out.write(block)
    return digest.hexdigest(), size


def _claims(request: Request, folder: Path, sums: Sums, pool: Pool) -> Iterator[Claim]:
    try:
        manifest = read_manifest(folder)
    except ConfigError as error:
        yield Claim("manifest", "fails", str(error))
        return
    yield Claim("manifest", "holds", f"written {manifest.created}, {len(manifest.files)} files")
    yield files_claim(sums, manifest)
    yield _signature(request, folder)
    try:
        yield from _of_run(request, folder, manifest, sums, pool)
    except (MlebenchError, *_MALFORMED) as error:
        text = f"{type(error).__name__}: {error}" if isinstance(error, _MALFORMED) else str(error)
        yield Claim("records", "fails", f"cannot be read: {text}".replace(f"{folder}/", ""))


def _of_run(
    request: Request, folder: Path, manifest: Manifest, sums: Sums, pool: Pool
) -> Iterator[Claim]:
    """Judge what is claimed of the run; malformed files of it end the judgement."""
    # taken of the very bytes that were written to a folder of our own
    known = {str(folder / name): digest for name, (digest, _) in sums.items()}
    claimed = Report.read(folder / CLAIMS, request.registry)
    raw: dict[str, Any] = load_json(folder / CLAIMS)
    found = Report.from_run(folder / RUN, request.registry)
    relative = relative_report(found, folder / RUN)
    about = [
        attempts_claim(folder),
        kept_claim(folder, manifest, lambda path: known.get(str(path)) or sha256(path)),
        records_claim(claimed, relative),
        *text_claims(folder, raw, relative, manifest),
    ]
    yield from about
    graded = _regrade(request, found, sums, pool)
    for result in found.results:
        if result.run is not None:
            yield score_claim(result, graded)
            yield from snapshot_claims(result, graded)
    anew = replace(found, results=tuple(with_grade(result, graded) for result in found.results))
    yield rates_claim(raw, anew)
    yield conditions_claim(raw, anew)
    attempts = [
        replace(attempt, known_sum=known.get(str(attempt.folder.submission)))
        for attempt in files_of(found.results, request.registry, request.store)
    ]
    finished = partial(remove_unpacked, folder)
    yield audit_claim(attempts, found.audit, manifest, request.jobs, finished)


def remove_unpacked(folder: Path, attempt: AttemptFiles) -> None:
    """Remove what was unpacked of an attempt: a slow disk does so while others are looked at."""
    path = attempt.folder.path.resolve()
    if path.is_relative_to(folder.resolve() / RUN):  # whatever a hostile bundle says of the place
        shutil.rmtree(path, ignore_errors=True)


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


def _regrade(request: Request, found: Report, sums: Sums, pool: Pool) -> dict[str, Regraded]:
    files = {
        key: (result.competition, path)
        for result in found.results
        if result.run is not None and result.grade is not None
        for key, path in gradable(result)
        if path.is_file()
    }
    roots = request.registry.roots[1:]  # the built-in ones are there anyway
    tasks = [
        Task(key, competition, path, request.store, roots, request.score)
        for key, (competition, path) in files.items()
    ]
    content = hashlib.sha256(repr(sorted(sums.items())).encode()).hexdigest()
    notes = Notes(request.store / NOTES / f"{content}.jsonl")
    graded = regrade(tasks, pool, notes, request.progress)
    if all(each.grade is not None for each in graded.values()):
        notes.forget()
    return graded
