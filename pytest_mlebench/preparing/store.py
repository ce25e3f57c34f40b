"""The dataset store: every competition prepared once, whole or not at all."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pytest_mlebench.competition import Competition
from pytest_mlebench.dataset import Dataset
from pytest_mlebench.errors import DatasetError, MlebenchError, PreparationError
from pytest_mlebench.preparing import checksums
from pytest_mlebench.preparing.lock import Say, exclusive
from pytest_mlebench.preparing.marker import Marker, Verified, code_hash, read_marker

logger = logging.getLogger(__name__)

SCRATCH = ".tmp-"
REPLACED = ".old-"


class Store:
    """A folder of datasets: ``<root>/<id>/{raw,prepared/public,prepared/private}``."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)

    def folder(self, competition: Competition) -> Path:
        """Return the folder of a competition."""
        return self.root / competition.id

    def prepared(self, competition: Competition) -> Path:
        """Return the folder that holds ``public`` and ``private``."""
        return self.folder(competition) / "prepared"

    def find(self, competition: Competition) -> Dataset | None:
        """Return the dataset if it is complete: by its marker, else by its checksums."""
        prepared = self.prepared(competition)
        if not prepared.is_dir():
            return None
        marker = read_marker(prepared)
        if marker is not None:
            fits = marker.fits(competition, prepared)
            return self._dataset(competition, marker.verified) if fits else None
        if not checksums.expected(competition) or checksums.compare(competition, prepared):
            return None
        return self._dataset(competition, "checksums")

    def ensure(
        self,
        competition: Competition,
        *,
        prepare: bool = True,
        verify: bool = True,
        progress: Say | None = None,
    ) -> Dataset:
        """Return the dataset, made now if it is missing, by one process while others wait."""
        found = self.find(competition)
        if found is not None and self._settled(found, verify):
            return found
        if not prepare:
            raise DatasetError(
                f"{competition.id}: not prepared in {self.root}: "
                f"run pytest-mlebench prepare --competition {competition.id}"
            )
        say = progress or logger.info
        with _our_errors(competition, self.root), self._turn(competition, say) as scratch:
            found = self.find(competition)  # while we waited, somebody may have made it
            if found is None:
                return self._make(competition, scratch, verify=verify, say=say)
            if not self._settled(found, verify):
                self._verify_again(competition)
            return self._adopt(competition)

    def _settled(self, found: Dataset, verify: bool) -> bool:
        # Prepared by the reference implementation: to be marked, so that it is read only once.
        prepared = found.public.parent
        unmarked = read_marker(prepared) is None and os.access(prepared, os.W_OK)
        return not unmarked and not (verify and found.verified == "off")

    @contextmanager
    def _turn(self, competition: Competition, say: Say) -> Iterator[Path]:
        """Hold the competition's folder, tidy after the dead, yield a scratch folder in it."""
        folder = self.folder(competition)
        folder.mkdir(parents=True, exist_ok=True)
        with exclusive(folder, competition.id, say) as turn:
            _tidy(folder)
            scratch = folder / f"{SCRATCH}{turn}"
            scratch.mkdir()
            try:
                yield scratch
            finally:
                shutil.rmtree(scratch, ignore_errors=True)

    def _make(self, competition: Competition, scratch: Path, *, verify: bool, say: Say) -> Dataset:
        raw = self._raw(competition, scratch, say)
        say(f"{competition.id}: preparing")
        new = scratch / "prepared"
        competition.prepare(raw, new / "public", new / "private")
        verified = self._verify(competition, new, verify)
        self._marker(competition, new, verified).write(new)
        _move(new, self.prepared(competition), scratch)
        say(f"{competition.id}: prepared")
        return self._dataset(competition, verified)

    def _raw(self, competition: Competition, scratch: Path, say: Say) -> Path:
        raw = self.folder(competition) / "raw"
        if competition.source == "generated":
            say(f"{competition.id}: generating")
            raw = scratch / "raw"
            raw.mkdir()
            _generate(competition, raw)
        elif not raw.is_dir() or not any(raw.iterdir()):
            raise DatasetError(
                f"{competition.id}: no raw files: put them into {raw}, "
                "or name the folder that has them with pytest-mlebench prepare --from DIR"
            )
        return raw

    def _verify(self, competition: Competition, prepared: Path, verify: bool) -> Verified:
        if not verify:
            return "off"
        if not checksums.expected(competition):
            return "none"
        checksums.verify(competition, prepared, "fetch the raw files again")
        return "checksums"

    def _verify_again(self, competition: Competition) -> None:
        """Verify now what was prepared with verification off."""
        prepared = self.prepared(competition)
        verified = self._verify(competition, prepared, verify=True)
        self._marker(competition, prepared, verified).write(prepared)

    def _adopt(self, competition: Competition) -> Dataset:
        """Mark a dataset that was made elsewhere, so that it need not be read again."""
        prepared = self.prepared(competition)
        marker = read_marker(prepared)
        if marker is None:
            marker = self._marker(competition, prepared, "checksums")
            marker.write(prepared)
        return self._dataset(competition, marker.verified)

    def _marker(self, competition: Competition, prepared: Path, verified: Verified) -> Marker:
        names = {f"public/{competition.sample}", f"private/{competition.answers}"}
        names |= checksums.expected(competition).keys()
        if competition.source == "generated":  # they are small: all of them
            names |= {str(p.relative_to(prepared)) for p in prepared.rglob("*") if p.is_file()}
        paths = [prepared / name for name in sorted(names) if (prepared / name).is_file()]
        return Marker(
            competition=competition.id,
            source=competition.source,
            code=code_hash(competition),
            verified=verified,
            prepared_at=datetime.now(UTC).isoformat(timespec="seconds"),
            files={
                path.relative_to(prepared).as_posix(): {"md5": md5, "bytes": path.stat().st_size}
                for path, md5 in zip(paths, checksums.md5_all(paths), strict=True)
            },
        )

    def _dataset(self, competition: Competition, verified: str) -> Dataset:
        prepared = self.prepared(competition)
        return Dataset(competition, prepared / "public", prepared / "private", verified)


def _generate(competition: Competition, raw: Path) -> None:
    try:
        competition.generate(raw)
    except MlebenchError:
        raise
    except Exception as error:
        raise PreparationError(
            f"{competition.id}: cannot generate its data: {type(error).__name__}: {error}"
        ) from error


def _tidy(folder: Path) -> None:
    """Undo what a killed process left: its scratch folder, a replacement half done."""
    for old in folder.glob(f"{SCRATCH}*/{REPLACED}prepared"):
        if not (folder / "prepared").exists():
            old.rename(folder / "prepared")
    for scratch in folder.glob(f"{SCRATCH}*"):
        shutil.rmtree(scratch, ignore_errors=True)


def _move(new: Path, target: Path, scratch: Path) -> None:
    """Put *new* in the place of *target*; a kill in between is undone by the next turn."""
    if target.exists():
        target.rename(scratch / f"{REPLACED}{target.name}")
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
