"""The files that are kept of an attempt, and sums of them: what is changed later is found out."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_mlebench._files import sha256
from pytest_mlebench.layout import AttemptFolder

PARTS = ("submission", "code", "logs")
CODE = "artefacts/code"
_SCRATCH = (".", "home/", "sockets/")  # and the workspace of an attempt that runs
_OWN_SUMS = ("record.json", "snapshots/")  # the record has the sums, snapshots are named by theirs


def portable_name(name: str) -> str:
    """Return a name that every archive can have: never a longer one, the same if it is such."""
    if name.isprintable() and "\\" not in name:
        return name
    # bytes that are no UTF-8 are surrogates here, which are not printable
    return "".join(c if c.isprintable() and c != "\\" else "_" for c in name)


def regular_files(folder: Path) -> Iterator[Path]:
    """Yield what is a file itself, below folders that are folders themselves."""
    for root, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not Path(root, name).is_symlink())
        for name in sorted(names):
            path = Path(root, name)
            if stat.S_ISREG(path.lstat().st_mode):
                yield path


def kept_files(attempt: AttemptFolder) -> Iterator[tuple[str, Path]]:
    """Yield the files of an attempt that last, by their names in its folder."""
    for path in regular_files(attempt.path):
        name = path.relative_to(attempt.path).as_posix()
        if is_kept(name):
            yield name, path


def is_kept(name: str) -> bool:
    """Tell whether a file in an attempt's folder lasts, by its name there."""
    return not name.startswith(_SCRATCH) and name == portable_name(name)


def sums_of(attempt: AttemptFolder, sum_of_file: Callable[[Path], str] = sha256) -> dict[str, str]:
    """Return a sum of the submission, of the code and of the logs, as they are now."""
    parts: dict[str, list[str]] = {}
    for name, path in kept_files(attempt):
        if not name.startswith(_OWN_SUMS):
            parts.setdefault(_part(name), []).append(f"{name}\0{sum_of_file(path)}")
    return {part: _sum_of(sorted(lines)) for part, lines in sorted(parts.items())}


def _part(name: str) -> str:
    if name == "submission.csv":
        return "submission"
    return "code" if name.startswith(f"{CODE}/") else "logs"


def _sum_of(lines: list[str]) -> str:
    text = "\n".join(lines).encode("utf-8", "surrogateescape")
    return hashlib.sha256(text).hexdigest()
