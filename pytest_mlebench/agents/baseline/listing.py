"""The pictures, sounds and arrays of a data folder, in its folders and in its zip archives."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

MAX_LISTED = 500_000  # files below one entry of the data folder
MAX_FILE_BYTES = 100_000_000  # a larger file is not read

Kind = Literal["picture", "sound", "array", "series"]
Split = Literal["train", "test", ""]

KINDS: dict[str, Kind] = {
    **dict.fromkeys((".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff"), "picture"),
    **dict.fromkeys((".wav", ".aif", ".aiff"), "sound"),
    ".npy": "array",
    ".csv": "series",
}
_SPLIT = re.compile(r"train|test")


class MediaFile(NamedTuple):
    """A file below a folder, or a member of an archive."""

    root: Path  # the folder or the archive
    path: str  # below the root

    @property
    def key(self) -> str:
        """Return the name by which a table may mention the file: without folder and suffix."""
        return key_of(self.path)

    @property
    def kind(self) -> Kind:
        """Return what the suffix promises."""
        return KINDS[_suffix(self.path)]

    @property
    def folder(self) -> str:
        """Return the folder, of which an archive is the first part."""
        path = f"{self.root.stem}/{self.path}" if self.root.suffix == ".zip" else self.path
        return path.rpartition("/")[0]

    @property
    def split(self) -> Split:
        """Tell from the folder what the file is for, if it says so."""
        found = _SPLIT.search(self.folder.lower())
        return "" if found is None else "train" if found[0] == "train" else "test"

    @property
    def place(self) -> str:
        """Return the folder without the words that tell splits: the same for files alike."""
        return _SPLIT.sub("", self.folder.lower())

    def read(self) -> bytes:
        """Return the content."""
        if self.root.suffix == ".zip":
            archive = _archive(self.root)
            size = archive.getinfo(self.path).file_size
        else:
            size = (self.root / self.path).stat().st_size
        if size > MAX_FILE_BYTES:
            raise ValueError(f"{self.path} has {size} bytes")
        if self.root.suffix == ".zip":
            return archive.read(self.path)
        return (self.root / self.path).read_bytes()


def key_of(name: str) -> str:
    """Return the last part of a name, without a suffix that media have."""
    last = name.rpartition("/")[2]
    return last[: len(last) - len(_suffix(last))] if _suffix(last) in KINDS else last


def list_media(folders: Iterable[Path]) -> list[MediaFile]:
    """Return the files below *folders* that can be of use, always in the same order."""
    return [
        file
        for folder in folders
        for entry in sorted(folder.iterdir())
        for file in islice(_below(folder, entry), MAX_LISTED)
    ]


def _below(folder: Path, entry: Path) -> Iterator[MediaFile]:
    if entry.is_dir():
        yield from _walk(folder, entry)
    elif entry.suffix == ".zip" and not entry.with_suffix("").is_dir():  # not what is unpacked
        names = sorted(name for name in _members(entry) if "__MACOSX" not in name)
        # a table in an archive describes many rows, not one
        yield from (
            MediaFile(entry, n) for n in names if KINDS.get(_suffix(n), "series") != "series"
        )


def _members(archive: Path) -> list[str]:
    try:
        return _archive(archive).namelist()
    except zipfile.BadZipFile:
        return []


def _walk(root: Path, folder: Path) -> Iterator[MediaFile]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        inside = Path(parent).relative_to(root).as_posix()
        yield from (MediaFile(root, f"{inside}/{n}") for n in sorted(names) if _suffix(n) in KINDS)


def _suffix(name: str) -> str:
    _, dot, end = name.rpartition(".")  # a path object for each of a million names takes long
    return f"{dot}{end.lower()}" if dot and "/" not in end else ""


@lru_cache(maxsize=16)
def _archive(file: Path) -> zipfile.ZipFile:
    """Open an archive once: to read its directory takes long where it has many members."""
    return zipfile.ZipFile(file)
