"""The dataset store: every competition prepared once, whole or not at all."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from pytest_mlebench._files import md5
from pytest_mlebench._messages import Log, Progress, silent
from pytest_mlebench.competition import Competition
from pytest_mlebench.dataset import Dataset
from pytest_mlebench.errors import DatasetError
from pytest_mlebench.kaggle.download import forget_zip
from pytest_mlebench.preparing.written_sums import WrittenSums, noted_sums
from pytest_mlebench.store import prepared_sums
from pytest_mlebench.store.child import prepare_apart
from pytest_mlebench.store.lock import Busy, exclusive
from pytest_mlebench.store.marker import NAME as MARKER
from pytest_mlebench.store.marker import Marker, Verified, code_hash, read_marker
from pytest_mlebench.store.obtain import KeepRaw, Raw, StorePlace, clear, keep, leftovers, obtain
from pytest_mlebench.store.progress import as_progress
from pytest_mlebench.store.swap import exchange
from pytest_mlebench.store.turns import Turns

logger = logging.getLogger(__name__)

PREPARED = "prepared"
SCRATCH = ".tmp-"
REPLACED = ".old-"
DRAFTS = (".lease.*", "..lease.*", "..raw.json.*", ".{id}.zip.*", "prepared/..mlebench.json.*")


class Store:
    """A folder of datasets: ``<root>/<id>/{raw,prepared/public,prepared/private}``."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)

    def folder(self, competition: Competition) -> Path:
        """Return the folder of a competition."""
        return self.root / competition.id

    def prepared(self, competition: Competition) -> Path:
        """Return the folder that holds ``public`` and ``private``."""
        return self.folder(competition) / PREPARED

    def stamp(self, competition: Competition) -> tuple[int, int] | None:
        """Return what is another when a dataset is made anew; None while there is none."""
        try:
            found = self.root.joinpath(competition.id, PREPARED, MARKER).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def find(self, competition: Competition) -> Dataset | None:
        """Return the dataset if it is complete: by its marker, else by its checksums.

        What the reference implementation prepared has no marker; once its checksums have been
        found right it gets one, unless the store is read-only.
        """
        prepared = self.prepared(competition)
        if not prepared.is_dir():
            return None
        marker = read_marker(prepared)
        if marker is None:
            marker = _adopt(competition, prepared)
        if marker is None:
            return None
        if not marker.fits(competition, prepared):
            return None
        public, private = prepared / "public", prepared / "private"
        return Dataset(competition, public, private, marker.verified, marker.sum)

    def ensure(
        self,
        competition: Competition,
        *,
        prepare: bool = True,
        verify: bool = True,
        progress: Log | None = None,
        keep_raw: KeepRaw = "none",
        source: Path | None = None,
        apart: bool = False,
        turns: Turns | None = None,
    ) -> Dataset:
        """Return the dataset, made now if it is missing, by one process while others wait.

        *source* is a folder with zips or raw trees to take instead of downloading; *apart*
        prepares in a process of its own; *turns* are shared with others that are made meanwhile.
        """
        found = self.find(competition)
        if found is not None and not (verify and found.verified == "off"):
            self._tidy_after_a_kill(competition)
            return found
        if not prepare and found is None:
            raise DatasetError(
                f"{competition.id}: not prepared in {self.root}: "
                f"run pytest-mlebench prepare --competition {competition.id}"
            )
        log = as_progress(progress or logger.info)
        wanted = _Wanted(verify, keep_raw, source, apart, turns or Turns(), log)
        with _our_errors(competition, self.root), self._turn(competition, wanted) as scratch:
            found = self.find(competition)  # while we waited, somebody may have made it
            if found is None:
                self._make(competition, scratch, wanted)
            elif verify and found.verified == "off":
                self._verify_again(competition)
        made = self.find(competition)
        if made is None:
            raise DatasetError(f"{competition.id}: vanished from {self.root} while it was prepared")
        return made

    @contextmanager
    def _turn(self, competition: Competition, wanted: _Wanted) -> Iterator[Path]:
        """Hold the competition's folder, tidy after the dead, yield a scratch folder in it."""
        folder = self.folder(competition)
        folder.mkdir(parents=True, exist_ok=True)
        with exclusive(folder, competition.id, wanted.progress) as turn:
            _tidy(folder)
            scratch = folder / f"{SCRATCH}{turn}"
            scratch.mkdir(mode=0o700)  # raw files and answers pass through it
            try:
                yield scratch
            finally:
                shutil.rmtree(scratch, ignore_errors=True)

    def _make(self, competition: Competition, scratch: Path, wanted: _Wanted) -> None:
        place = StorePlace(competition, self.folder(competition))
        with wanted.turns.fetching:
            raw = obtain(
                place,
                scratch,
                verify=wanted.verify,
                source=wanted.source,
                progress=wanted.progress,
            )
        with wanted.turns.making:
            self._make_from(raw, place, scratch, wanted)

    def _make_from(self, raw: Raw, place: StorePlace, scratch: Path, wanted: _Wanted) -> None:
        competition = place.competition
        wanted.progress(f"{competition.id}: preparing")
        new = scratch / PREPARED
        sum_of = _prepare(competition, raw.path, new, wanted).md5
        if wanted.verify:
            marker = _verified(competition, new, sum_of)
        else:
            marker = _marker(competition, new, "off", sum_of=sum_of)
        replace(marker, origin=raw.origin).write(new)
        (new / "private").chmod(0o700)  # agents of other users on this host must not read it
        keep(place, raw, wanted.keep_raw)
        _move(new, self.prepared(competition), scratch)
        clear(place)
        wanted.progress(f"{competition.id}: prepared")

    def _tidy_after_a_kill(self, competition: Competition) -> None:
        """Remove what a process left that was killed after its work was done."""
        folder = self.folder(competition)
        place = StorePlace(competition, folder)
        traces = any(path.name.startswith((SCRATCH, ".lease")) for path in folder.iterdir())
        if not traces and not leftovers(place):
            return
        with suppress(Busy, OSError), exclusive(folder, competition.id, silent, wait=False):
            _tidy(folder)
            clear(place)

    def _verify_again(self, competition: Competition) -> None:
        """Verify now what was prepared with verification off."""
        prepared = self.prepared(competition)
        before = read_marker(prepared)
        marker = _verified(competition, prepared)
        replace(marker, origin=before.origin if before else {}).write(prepared)


@dataclass(frozen=True)
class _Wanted:
    """How a dataset is to be made."""

    verify: bool
    keep_raw: KeepRaw
    source: Path | None
    apart: bool
    turns: Turns
    progress: Progress


def _prepare(competition: Competition, raw: Path, new: Path, wanted: _Wanted) -> WrittenSums:
    """Make the prepared folders and return the sums that were taken on the way."""
    parts = new / "public", new / "private"
    if wanted.apart:
        return prepare_apart(
            competition, raw, *parts, cpus=wanted.turns.cpus, progress=wanted.progress
        )
    with noted_sums(prepared_sums.file_names(competition)) as written:
        competition.prepare(raw, *parts)
    return written


def _verified(
    competition: Competition, prepared: Path, sum_of: prepared_sums.SumOf = md5
) -> Marker:
    """Return the marker of files that match their published sums, or raise DatasetError."""
    if not prepared_sums.expected(competition):
        return _marker(competition, prepared, "none", sum_of=sum_of)
    comparison = prepared_sums.verify(competition, prepared, "fetch the raw files again", sum_of)
    return _marker(competition, prepared, "checksums", comparison.sums, sum_of)


def _adopt(competition: Competition, prepared: Path) -> Marker | None:
    """Mark what was made elsewhere, if its sums are right, so that it need not be read again."""
    if not prepared_sums.expected(competition):
        return None
    comparison = prepared_sums.compare(competition, prepared)
    if comparison.wrong:
        return None
    marker = _marker(competition, prepared, "checksums", comparison.sums)
    try:
        (prepared / "private").chmod(0o700)  # as if it had been made here
        marker.write(prepared)
    except OSError:
        logger.debug("%s is read-only: it will be verified again next time", prepared)
    return marker


def _marker(
    competition: Competition,
    prepared: Path,
    verified: Verified,
    sums: Mapping[str, str] = MappingProxyType({}),
    sum_of: prepared_sums.SumOf = md5,
) -> Marker:
    """Return the marker of a prepared folder; *sums* are those that are known already."""
    names = prepared_sums.marked(competition)
    if competition.source == "generated":  # they are small: all of them
        names |= {p.relative_to(prepared).as_posix() for p in prepared.rglob("*")} - {MARKER}
    files = {name: prepared / name for name in sorted(names) if (prepared / name).is_file()}
    return Marker(
        competition=competition.id,
        source=competition.source,
        code=code_hash(competition),
        verified=verified,
        prepared_at=datetime.now(UTC).isoformat(timespec="seconds"),
        files={
            name: {"md5": sums.get(name) or sum_of(path), "bytes": path.stat().st_size}
            for name, path in files.items()
        },
    )


def _tidy(folder: Path) -> None:
    """Undo what a killed process left: its scratch folder, a replacement half done."""
    for old in folder.glob(f"{SCRATCH}*/{REPLACED}{PREPARED}"):
        if not (folder / PREPARED).exists():
            old.rename(folder / PREPARED)
    for scratch in folder.glob(f"{SCRATCH}*"):
        shutil.rmtree(scratch, ignore_errors=True)
    for pattern in DRAFTS:
        for draft in folder.glob(pattern.format(id=folder.name)):
            draft.unlink(missing_ok=True)
    forget_zip(folder / f"{folder.name}.zip")


def _move(new: Path, target: Path, scratch: Path) -> None:
    """Put *new* in the place of *target*, at once where the system can exchange two names."""
    if not target.exists():
        new.rename(target)
    elif not exchange(new, target):
        target.rename(scratch / f"{REPLACED}{target.name}")  # a kill here is undone by _tidy
        new.rename(target)


@contextmanager
def _our_errors(competition: Competition, root: Path) -> Iterator[None]:
    """Say what a full disk or a read-only store means."""
    try:
        yield
    except OSError as error:
        raise DatasetError(
            f"{competition.id}: cannot write to the dataset store {root}: "
            f"{error.strerror or error}: choose another with --mle-data-dir"
        ) from error
