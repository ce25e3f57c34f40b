"""Putting raw files where the agent will see them: by hard link, else by copy.

A prepared file may share its bytes with the raw one, because nothing writes to either: what the
agent sees is mounted read-only or copied.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from pathlib import Path

from pytest_mlebench.errors import PreparationError

_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES}
_BATCH_FILES = 16_384  # there may be millions: never all at once
_WORKERS = min(8, os.cpu_count() or 1)


def require(path: Path) -> Path:
    """Return *path*, or say that the raw data lack it."""
    if not path.exists():
        raise PreparationError(f"{path}: no such file in the raw data")
    return path


def link(source: Path, target: Path) -> None:
    """Put one raw file at *target*, making its folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not _link(os.fspath(source), os.fspath(target)):
        shutil.copyfile(source, target)


def link_all(pairs: Iterable[tuple[Path, Path]]) -> None:
    """Put many raw files at their targets, on all cores."""
    _link_all((os.fspath(source), os.fspath(target)) for source, target in pairs)


def link_named(names: Iterable[object], source: Path, target: Path, suffix: str = "") -> None:
    """Put the files of a raw folder that are called by *names* into another folder."""
    _link_all((f"{source}/{name}{suffix}", f"{target}/{name}{suffix}") for name in names)


def link_tree(
    source: Path, target: Path, *, skip: Container[str] = (), follow: bool = False
) -> None:
    """Put a whole raw folder at *target*, empty folders included, files named in *skip* not.

    With *follow*, what symbolic links lead to is put in their place.
    """
    require(source)
    _link_all(_tree(source, target, skip, follow))


def list_files(folder: Path, pattern: str = "*") -> list[Path]:
    """Return the files directly in *folder* whose names match, sorted as paths."""
    if not folder.is_dir():
        raise PreparationError(f"{folder}: no such folder in the raw data")
    return sorted(path for path in folder.glob(pattern) if path.is_file())


def _tree(
    source: Path, target: Path, skip: Container[str], follow: bool
) -> Iterator[tuple[str, str]]:
    for folder, _, names in os.walk(source, followlinks=follow):
        here = target / Path(folder).relative_to(source)
        here.mkdir(parents=True, exist_ok=True)
        for name in names:
            if name not in skip:
                path = f"{folder}/{name}"
                yield _real(path) if follow else path, f"{here}/{name}"


def _real(path: str) -> str:
    """Return where a file is: a link to a symbolic link would be one itself."""
    return str(Path(path).resolve()) if Path(path).is_symlink() else path


def _link_all(pairs: Iterable[tuple[str, str]]) -> None:
    """Let each folder be filled by one thread: two would only wait for its lock in turn."""
    rest = iter(pairs)
    made: set[str] = set()
    with ThreadPoolExecutor(_WORKERS) as pool:
        while work := list(islice(rest, _BATCH_FILES)):
            folders: dict[str, list[tuple[str, str]]] = defaultdict(list)
            for source, target in work:
                folders[target.rpartition("/")[0]].append((source, target))
            for folder in folders.keys() - made:
                Path(folder).mkdir(parents=True, exist_ok=True)
            made |= folders.keys()
            batches = list(folders.values())
            shares = [chain.from_iterable(batches[n::_WORKERS]) for n in range(_WORKERS)]
            refused = chain.from_iterable(pool.map(_link_share, shares))
            list(pool.map(lambda pair: shutil.copyfile(*pair), refused))


def _link_share(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Link some files; return those that cannot be linked."""
    return [pair for pair in pairs if not _link(*pair)]


def _link(source: str, target: str) -> bool:
    """Link a file; return whether that is possible here."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise PreparationError(f"{source}: no such file in the raw data") from None
    except FileExistsError:
        Path(target).unlink()
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        return False
    return True
