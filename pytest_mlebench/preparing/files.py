"""Putting raw files where the agent will see them: by hard link, else by copy.

A prepared file may share its bytes with the raw one, because nothing writes to either: what the
agent sees is mounted read-only or copied.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fnmatch import translate
from itertools import chain, islice
from pathlib import Path

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.host.hardware import host_cpus

_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES}
_BATCH_FILES = 16_384  # there may be millions: never all at once
_MAX_WORKERS = 8

Names = list[tuple[str, str]]  # of files, in one folder and in another


def require(path: Path) -> Path:
    """Return *path*, or say that the raw data lack it."""
    if not path.exists():
        raise PreparationError(f"{path}: no such file in the raw data")
    return path


def link(source: Path, target: Path) -> None:
    """Put one raw file at *target*, making its folder."""
    link_all([(source, target)])


def link_all(pairs: Iterable[tuple[Path, Path]]) -> None:
    """Put many raw files at their targets, on all cores."""
    _link_all((os.fspath(source), os.fspath(target)) for source, target in pairs)


def link_named(names: Iterable[object], source: Path, target: Path, suffix: str = "") -> None:
    """Put the files of a raw folder that are called by *names* into another folder."""
    link_renamed(((name := f"{each}{suffix}", name) for each in names), source, target)


def link_renamed(names: Iterable[tuple[str, str]], source: Path, target: Path) -> None:
    """Put files of a raw folder into another folder, by their old and their new names."""
    _link_all((f"{source}/{old}", f"{target}/{new}") for old, new in names)


def link_tree(
    source: Path, target: Path, *, skip: Container[str] = (), follow: bool = False
) -> None:
    """Put a whole raw folder at *target*, empty folders included, files named in *skip* not.

    With *follow*, what symbolic links lead to is put in their place.
    """
    require(source)
    _link_all(_tree(os.fspath(source), os.fspath(target), skip, follow))


def list_files(folder: Path, pattern: str = "*") -> list[Path]:
    """Return the files directly in *folder* whose names match, sorted by name."""
    return [folder / name for name in list_names(folder, pattern)]


def list_names(folder: Path, pattern: str = "*") -> list[str]:
    """Return the names of the files directly in *folder* that match, sorted."""
    if not folder.is_dir():
        raise PreparationError(f"{folder}: no such folder in the raw data")
    matches = re.compile(translate(pattern)).match
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if matches(entry.name) and entry.is_file())


def _tree(
    source: str, target: str, skip: Container[str], follow: bool
) -> Iterator[tuple[str, str]]:
    """Yield where each file of a tree is and where it goes, without a look at the file itself."""
    folders = [(source, target)]
    for here, there in folders:
        Path(there).mkdir(parents=True, exist_ok=True)
        with os.scandir(here) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=follow):
                    folders.append((entry.path, f"{there}/{entry.name}"))
                elif entry.name not in skip and not (entry.is_symlink() and entry.is_dir()):
                    # a link to a symbolic link would be one itself
                    followed = follow and entry.is_symlink()
                    path = str(Path(entry.path).resolve()) if followed else entry.path
                    yield path, f"{there}/{entry.name}"


def _link_all(pairs: Iterable[tuple[str, str]]) -> None:
    """Let each folder be filled by one thread: two would only wait for its lock in turn."""
    rest = iter(pairs)
    made: set[str] = set()
    workers = min(_MAX_WORKERS, host_cpus())
    with ThreadPoolExecutor(workers) as pool:
        while work := list(islice(rest, _BATCH_FILES)):
            folders: dict[tuple[str, str], Names] = defaultdict(list)
            for source, target in work:
                source_folder, _, old = source.rpartition("/")
                target_folder, _, new = target.rpartition("/")
                folders[target_folder, source_folder].append((old, new))
            for folder in {target for target, _ in folders} - made:
                Path(folder).mkdir(parents=True, exist_ok=True)
                made.add(folder)
            ordered = sorted(folders.items())
            shares = [ordered[n::workers] for n in range(workers)]
            refused = chain.from_iterable(pool.map(_link_share, shares))
            list(pool.map(lambda pair: shutil.copyfile(*pair), refused))


def _link_share(folders: list[tuple[tuple[str, str], Names]]) -> list[tuple[str, str]]:
    """Link the files of some folders; return those that cannot be linked."""
    refused = []
    for (target, source), names in folders:
        with _opened(source, names) as source_fd, _opened(target, names) as target_fd:
            for old, new in names:
                if not _link(f"{source}/{old}", old, source_fd, new, target_fd):
                    refused.append((f"{source}/{old}", f"{target}/{new}"))
    return refused


@contextmanager
def _opened(folder: str, names: Names) -> Iterator[int]:
    """Open a folder: names within it are found without going through all the folders above."""
    try:
        descriptor = os.open(folder or "/", os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        raise PreparationError(f"{folder}/{names[0][0]}: no such file in the raw data") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _link(source: str, old: str, source_fd: int, new: str, target_fd: int) -> bool:
    """Link a file; return whether that is possible here."""
    try:
        # A symbolic link is linked itself, as by link(2); what it leads to may not be in reach.
        os.link(old, new, src_dir_fd=source_fd, dst_dir_fd=target_fd, follow_symlinks=False)
    except FileNotFoundError:
        raise PreparationError(f"{source}: no such file in the raw data") from None
    except FileExistsError:
        os.unlink(new, dir_fd=target_fd)
        return _link(source, old, source_fd, new, target_fd)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        return False
    return True
