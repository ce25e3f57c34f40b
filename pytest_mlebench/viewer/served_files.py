"""Reading below the runs folder and nowhere else: no way up, no links, so many bytes at most."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pytest_mlebench._plain_text import one_line
from pytest_mlebench.layout import PLAN

MAX_BYTES = 1024 * 1024  # of a file that is shown
MAX_ENTRIES = 1000  # of a folder that is shown
SHOWN_FROM_END = (".log", ".jsonl")
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Shown:
    """What a path has to show: bytes of a file, or the names in a folder."""

    data: bytes = b""
    size: int = 0  # of the whole file
    names: tuple[str, ...] | None = None  # of a folder; those of folders end in a slash

    @property
    def is_whole(self) -> bool:
        """Tell whether all of the file is there."""
        return len(self.data) == self.size


def run_names(root: Path) -> list[str]:
    """Return the runs of a folder, the latest first."""
    found = []
    with os.scandir(root) as entries:
        for entry in entries:
            plan = Path(entry.path, PLAN)
            if _is_plain(entry.name) and entry.is_dir(follow_symlinks=False) and plan.is_file():
                found.append((plan.stat().st_mtime, entry.name))
    return [name for _, name in sorted(found, reverse=True)]


def run_folder(root: Path, name: str) -> Path:
    """Return the folder of a run; FileNotFoundError for anything else."""
    path = root / name
    if not _is_plain(name) or path.is_symlink() or not (path / PLAN).is_file():
        raise FileNotFoundError(name)
    return path


@contextmanager
def opened_file(root: Path, parts: Sequence[str]) -> Iterator[BinaryIO]:
    """Open a regular file below *root*; OSError if there is none."""
    with _opened(root, parts) as handle:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise FileNotFoundError(parts[-1])
        with os.fdopen(os.dup(handle), "rb") as file:
            yield file


def show(root: Path, parts: Sequence[str]) -> Shown:
    """Return what a path below *root* has to show; OSError if there is nothing."""
    with _opened(root, parts) as handle:
        facts = os.fstat(handle)
        if stat.S_ISDIR(facts.st_mode):
            return Shown(names=tuple(_names(handle)))
        if not stat.S_ISREG(facts.st_mode):
            raise FileNotFoundError(parts[-1])
        start = max(0, facts.st_size - MAX_BYTES) if parts[-1].endswith(SHOWN_FROM_END) else 0
        data = os.pread(handle, min(MAX_BYTES, facts.st_size), start)
        return Shown(data, facts.st_size)


@contextmanager
def _opened(root: Path, parts: Sequence[str]) -> Iterator[int]:
    """Open a path name by name, so that a link in it, even one made meanwhile, leads nowhere."""
    if not parts or not all(map(_is_plain, parts)):
        raise FileNotFoundError("/".join(parts))
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            below = os.open(part, _FLAGS, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def _names(handle: int) -> Iterator[str]:
    with os.scandir(handle) as entries:
        for _, entry in zip(range(MAX_ENTRIES), entries, strict=False):
            if _is_plain(entry.name) and not entry.is_symlink():
                yield entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")


def _is_plain(name: str) -> bool:
    """Tell whether a name is one of a run's own: no way up, nothing hidden, nothing odd."""
    return bool(name) and name[0] != "." and "/" not in name and one_line(name) == name
