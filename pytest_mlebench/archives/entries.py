"""What an archive says it holds, judged before a single byte of it is written."""

from __future__ import annotations

import re
import shutil
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pytest_mlebench.errors import PreparationError

MAX_RATIO = 400  # a sparse csv reaches about 100, a zip bomb 1000 and more
MAX_UNCHECKED_BYTES = 1 << 30  # up to this size a high ratio does no harm
MAX_ENTRIES = 20_000_000

_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True)
class ArchiveEntry:
    """One member of an archive: its name, its size when unpacked, its kind as a file mode."""

    name: str
    size: int
    mode: int = stat.S_IFREG

    @property
    def is_folder(self) -> bool:
        """Tell whether the member is a folder."""
        return stat.S_ISDIR(self.mode)


def check_entries(
    archive: Path, entries: Iterable[ArchiveEntry], target: Path, *, there: int = 0
) -> None:
    """Refuse an archive that would write outside *target*, make links, or fill the disk.

    *there* are bytes of it that lie in *target* already.
    """
    total = 0
    for number, entry in enumerate(entries, start=1):
        check_name(archive, entry.name)
        if not (stat.S_ISREG(entry.mode) or entry.is_folder):
            raise PreparationError(
                f"{archive}: refused, member {entry.name!r} is a link or a device, not a file"
            )
        total += entry.size
        if number > MAX_ENTRIES:
            raise PreparationError(f"{archive}: refused, more than {MAX_ENTRIES} members")
    check_total(archive, total)
    check_space(archive, total - there, target)


def check_name(archive: Path, name: str) -> None:
    """Refuse a name that leads out of the folder it is unpacked into."""
    parts = name.replace("\\", "/").split("/")
    if parts[0] == "" or _DRIVE.match(name):
        raise PreparationError(f"{archive}: refused, member {name!r} has an absolute path")
    if ".." in parts:
        raise PreparationError(f"{archive}: refused, member {name!r} leads out of its folder")
    if "\0" in name:
        raise PreparationError(f"{archive}: refused, member {name!r} has a zero byte in its name")


def check_total(archive: Path, total: int) -> None:
    """Refuse an archive that unpacks to far more than data ever do."""
    packed = archive.stat().st_size
    if total > MAX_UNCHECKED_BYTES and total > packed * MAX_RATIO:
        raise PreparationError(
            f"{archive}: refused, {packed} bytes unpack to {total}, "
            f"more than {MAX_RATIO} times as many"
        )


def check_space(archive: Path, total: int, target: Path) -> None:
    """Refuse to begin what the disk cannot hold."""
    free = shutil.disk_usage(nearest(target)).free
    if total > free:
        raise PreparationError(
            f"{archive}: unpacks to {total} bytes, but {target} has room for {free} only: "
            "free some space"
        )


def nearest(path: Path) -> Path:
    """Return *path* or the nearest folder above it that exists."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path
