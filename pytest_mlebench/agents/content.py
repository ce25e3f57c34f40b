"""The content of an agent: which files of its folder are its own, and what they amount to."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

CACHES = {".git", ".hg", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}


def is_environment(path: Path) -> bool:
    """Tell whether a folder is a virtual environment, which is linked to and never copied."""
    return (path / "pyvenv.cfg").is_file() and not path.is_symlink()


def content_digest(folder: Path, hidden: Iterable[Path] = ()) -> str:
    """Return a digest of everything in a folder that an agent is given.

    *hidden* are folders that stay outside, such as the runs. Of a virtual environment only the
    names and versions of its packages count.
    """
    digest = hashlib.sha256()
    for name, path in agent_files(folder, hidden):
        digest.update(f"\0{name}\0".encode("utf-8", "surrogateescape"))
        for piece in _content(path):
            digest.update(piece)
    return digest.hexdigest()


def agent_files(folder: Path, hidden: Iterable[Path] = ()) -> Iterator[tuple[str, Path]]:
    """Yield what an agent is given of a folder: names and paths of files, links, environments."""
    yield from _files(folder, {os.path.realpath(path) for path in hidden})


def file_digest(path: Path) -> str:
    """Return a digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _files(folder: Path, outside: set[str], base: str = "") -> Iterator[tuple[str, Path]]:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path, name = Path(entry.path), f"{base}{entry.name}"
        if entry.name in CACHES or os.path.realpath(path) in outside:
            continue
        if entry.is_dir(follow_symlinks=False) and not is_environment(path):
            yield from _files(path, outside, f"{name}/")
        else:
            yield name, path


def _content(path: Path) -> Iterator[bytes]:
    if path.is_symlink():
        yield os.fsencode(path.readlink())
    elif path.is_dir():
        yield "\n".join(_packages(path)).encode()
    elif path.is_file():
        yield b"x" if os.access(path, os.X_OK) else b"-"
        with path.open("rb") as file:
            yield from iter(partial(file.read, 1 << 20), b"")


def _packages(environment: Path) -> list[str]:
    return sorted(path.name for path in environment.glob("lib*/**/site-packages/*.dist-info"))
