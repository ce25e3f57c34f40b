"""The raw files of a competition: generated, found, brought along or downloaded."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pytest_mlebench._files import md5, write_text
from pytest_mlebench._messages import Progress
from pytest_mlebench.archives.archive import extract, kind
from pytest_mlebench.archives.streaming import EarlyUnzip
from pytest_mlebench.archives.unzip import Done, unzip
from pytest_mlebench.competition import RAW, Competition
from pytest_mlebench.errors import DatasetError, MlebenchError, PreparationError
from pytest_mlebench.kaggle.client import Kaggle
from pytest_mlebench.kaggle.download import dispose_of, download, part_of, read_zip, remove_zip
from pytest_mlebench.preparing.files import link_tree
from pytest_mlebench.store.progress import Pulse

KeepRaw = Literal["none", "zip", "all"]
Origin = dict[str, str | int]

KEEP_RAW: tuple[KeepRaw, ...] = ("none", "zip", "all")
ARCHIVES = (".zip", ".7z", ".tar", ".tar.gz", ".tgz")


@dataclass(frozen=True)
class Raw:
    """A tree to prepare from, which may be written to, and where it came from."""

    path: Path
    origin: Origin = field(default_factory=dict)


@dataclass(frozen=True)
class StorePlace:
    """Where one competition lies in a store."""

    competition: Competition
    folder: Path

    @property
    def zip(self) -> Path:
        """Return where the zip lies; the reference implementation puts it there too."""
        return self.folder / f"{self.competition.id}.zip"

    @property
    def raw(self) -> Path:
        """Return where raw files are kept."""
        return self.folder / "raw"

    @property
    def note(self) -> Path:
        """Return the file that says that the raw files are complete and ours."""
        return self.folder / ".raw.json"

    def has_raw(self) -> bool:
        """Tell whether there are raw files, of whatever origin."""
        return self.raw.is_dir() and any(self.raw.iterdir())

    def needs_download(self) -> bool:
        """Tell whether the raw files have to come from Kaggle."""
        return self.competition.source == "kaggle" and not self.zip.exists() and not self.has_raw()


def obtain(
    place: StorePlace, scratch: Path, *, verify: bool, source: Path | None, progress: Progress
) -> Raw:
    """Return the raw files, in *scratch*, from the nearest place that has them."""
    competition = place.competition
    target = scratch / "raw"
    if source is not None:
        return _brought(competition, source, target, verify, progress)
    if competition.source == "generated":
        progress(f"{competition.id}: generating")
        return Raw(_generate(competition, target))
    if _is_ours(place):
        return _linked(place.raw, target, json.loads(place.note.read_text(encoding="utf-8")))
    if place.zip.exists():
        return _unpacked(competition, place.zip, target, verify, progress)
    at_hand = place.raw if place.has_raw() else competition.own_raw
    if at_hand is not None:
        progress(f"{competition.id}: using the raw files in {at_hand}")
        return _linked(at_hand, target, {"folder": str(at_hand)})
    if competition.source == "local":
        raise DatasetError(
            f"{competition.id}: no raw files: put them into {competition.folder / RAW} or "
            f"{place.raw}, "
            "or name the folder that has them with pytest-mlebench prepare --from DIR"
        )
    # Where the zip has to have its published sum in the end, that vouches for all its members.
    vouched = verify and _published(competition) is not None
    early = EarlyUnzip(part_of(place.zip), target, check=not vouched)
    try:
        with Kaggle(progress) as kaggle:
            progress(f"{competition.id}: downloading")
            download(kaggle, competition.id, place.zip, progress, early)
    finally:
        done = early.finish()
    return _unpacked(competition, place.zip, target, verify, progress, done)


def keep(place: StorePlace, raw: Raw, what: KeepRaw) -> None:
    """Keep of the raw files what is wanted, before the dataset is moved into its place."""
    if what == "none" and (known := read_zip(place.zip)) is not None:
        dispose_of(place.zip, known)
    if what == "all" and not place.raw.exists():
        raw.path.rename(place.raw)
        write_text(place.note, json.dumps(raw.origin))


def leftovers(place: StorePlace) -> bool:
    """Tell whether there is a zip that was to be removed."""
    known = read_zip(place.zip)
    return known is not None and known.disposable


def clear(place: StorePlace) -> None:
    """Remove the zip that is not to be kept; nothing that is not ours."""
    if leftovers(place):
        remove_zip(place.zip)


def find_source(competition: Competition, source: Path) -> Path:
    """Return the archive or the raw tree of a competition in a folder that the user names."""
    name = competition.id
    for suffix in ARCHIVES:
        for path in (source / f"{name}{suffix}", source / name / f"{name}{suffix}"):
            if path.is_file():
                return path
    for path in (source / name / "raw", source / name):
        if path.is_dir() and any(path.iterdir()) and not (path / "prepared").exists():
            return path
    raise DatasetError(
        f"{name}: nothing for it in {source}: expected {name}.zip or a folder {name} with raw files"
    )


def _brought(
    competition: Competition, source: Path, target: Path, verify: bool, progress: Progress
) -> Raw:
    found = find_source(competition, source)
    if found.is_file():
        return _unpacked(competition, found, target, verify, progress)
    progress(f"{competition.id}: using the raw files in {found}")
    return _linked(found, target, {"folder": str(found)})


def _generate(competition: Competition, target: Path) -> Path:
    target.mkdir()
    try:
        competition.generate(target)
    except MlebenchError:
        raise
    except Exception as error:
        raise PreparationError(
            f"{competition.id}: cannot generate its data: {type(error).__name__}: {error}"
        ) from error
    return target


def _is_ours(place: StorePlace) -> bool:
    return place.note.is_file() and place.has_raw()


def _linked(folder: Path, target: Path, origin: Origin) -> Raw:
    """Link a tree, so that a preparation that unpacks into it leaves the original alone."""
    link_tree(folder, target, follow=True)  # a symbolic link would lead nowhere in a sandbox
    return Raw(target, origin)


def _unpacked(
    competition: Competition,
    archive: Path,
    target: Path,
    verify: bool,
    progress: Progress,
    done: Done | None = None,
) -> Raw:
    """Unpack an archive; its checksum, if not yet known, is taken while it is being read."""
    progress(f"{competition.id}: unpacking {archive.name}")
    known = read_zip(archive)
    sum_of = _Sum(archive, known.md5 if known else None)
    if known is not None:
        _verify_zip(competition, archive, known.md5, verify)
    vouched = known is not None and known.md5 == _published(competition)
    with sum_of:
        if kind(archive) == "zip":
            report = Pulse(progress, f"{competition.id}: unpacking").bytes_done
            unzip(archive, target, done=done, check=not vouched, report=report)
        else:
            extract(archive, target)
    _verify_zip(competition, archive, sum_of.value, verify)
    size = archive.stat().st_size
    return Raw(target, {"zip": str(archive), "md5": sum_of.value, "bytes": size})


def _published(competition: Competition) -> str | None:
    return competition.checksums.zip if competition.checksums else None


def _verify_zip(competition: Competition, archive: Path, got: str, verify: bool) -> None:
    wanted = _published(competition)
    if not verify or not wanted or archive.suffix != ".zip" or got == wanted:
        return
    raise DatasetError(
        f"{competition.id}: {archive} is not the published zip, md5 expected {wanted}, got {got}: "
        "remove it and prepare again, or accept it with --mle-verify=off or prepare --verify off"
    )


class _Sum(threading.Thread):
    """The md5 sum of a file, taken beside the work that reads the same bytes."""

    def __init__(self, path: Path, known: str | None) -> None:
        super().__init__(daemon=True, name="mle-md5")
        self.path = path
        self.value = known or ""
        self.error: OSError | None = None

    def run(self) -> None:
        try:
            self.value = md5(self.path)
        except OSError as error:
            self.error = error

    def __enter__(self) -> None:
        if not self.value:
            self.start()

    def __exit__(self, failed: object, *_: object) -> None:
        if self.ident is not None and not failed:
            self.join()
        if self.error is not None:
            raise self.error
