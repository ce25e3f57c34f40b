"""Putting raw files where the agent will see them: by hard link, else by reflink or copy.

A prepared file may share its bytes with the raw one, because nothing writes to either: what the
agent sees is mounted read-only or copied.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Container, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from pytest_mlebench.errors import PreparationError

_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES}
_BATCH = 256  # files that a thread links in one go
_CHUNK = 64 * _BATCH


def require(path: Path) -> Path:
    """Return *path*, or say that the raw data lack it."""
    if not path.exists():
        raise PreparationError(f"{path}: no such file in the raw data")
    return path


def link(source: Path, target: Path) -> None:
    """Put one raw file at *target*, making its folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _link(source, target)


def link_all(pairs: Iterable[tuple[Path, Path]]) -> None:
    """Put many raw files at their targets, on all cores."""
    rest = iter(pairs)
    made: set[Path] = set()
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        while work := list(islice(rest, _CHUNK)):  # there may be millions: never all at once
            folders = {target.parent for _, target in work}
            for folder in folders - made:
                folder.mkdir(parents=True, exist_ok=True)
            made |= folders
            batches = [work[start : start + _BATCH] for start in range(0, len(work), _BATCH)]
            list(pool.map(_link_batch, batches))


def link_named(names: Iterable[object], source: Path, target: Path, suffix: str = "") -> None:
    """Put the files of a raw folder that are called by *names* into another folder."""
    link_all((source / f"{name}{suffix}", target / f"{name}{suffix}") for name in names)


def link_tree(source: Path, target: Path, *, skip: Container[str] = ()) -> None:
    """Put a whole raw folder at *target*, empty folders included, files named in *skip* not."""
    require(source)
    pairs = []
    for folder, _, names in os.walk(source):
        here = target / Path(folder).relative_to(source)
        here.mkdir(parents=True, exist_ok=True)
        pairs += [(Path(folder, name), here / name) for name in names if name not in skip]
    link_all(pairs)


def list_files(folder: Path, pattern: str = "*") -> list[Path]:
    """Return the files directly in *folder* whose names match, sorted as paths."""
    if not folder.is_dir():
        raise PreparationError(f"{folder}: no such folder in the raw data")
    return sorted(path for path in folder.glob(pattern) if path.is_file())


def _link_batch(pairs: list[tuple[Path, Path]]) -> None:
    for source, target in pairs:
        _link(source, target)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise PreparationError(f"{source}: no such file in the raw data") from None
    except FileExistsError:
        target.unlink()
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        shutil.copyfile(source, target)
