"""A folder that an image is built from: what of it goes to the engine, and what it stands for."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.sandbox.hidden import hidden_folders

_ARGUMENT = re.compile(r"^\s*ARG\s+(\w+)", re.IGNORECASE | re.MULTILINE)
_FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(\S+)", re.IGNORECASE | re.MULTILINE)
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")


class Context:
    """A folder with a Dockerfile, without what .dockerignore names and without what is hidden.

    A project's folder may well have the datasets and the runs in it: the answers must not become
    part of an image, and an image must not change with every run.
    """

    def __init__(self, folder: Path, dockerfile: str, hidden: Sequence[Path] = ()) -> None:
        self.folder = folder
        self.dockerfile = dockerfile
        self._hidden = hidden_folders(hidden)
        try:
            self._text = (folder / dockerfile).read_text(encoding="utf-8")
        except OSError as problem:
            reason = (problem.strerror or "").lower()
            raise ConfigError(f"cannot read {folder / dockerfile}: {reason}") from None

    def arguments(self) -> list[str]:
        """Return the names of the arguments that the Dockerfile takes."""
        return _ARGUMENT.findall(self._text)

    def bases(self, arguments: Mapping[str, str]) -> Iterator[str]:
        """Yield the images that the Dockerfile begins with, as far as its arguments tell."""
        for name in _FROM.findall(self._text):
            yield _VARIABLE.sub(lambda match: arguments.get(match[1], match[0]), name)

    def key(self, more: Iterable[object]) -> str:
        """Return what changes when the content does, or something in *more*."""
        digest = hashlib.sha256()
        for path in self.paths:
            for part in _content(self.folder / path):
                digest.update(part)
            digest.update(f"\0{path}\0".encode())
        for item in more:
            digest.update(f"{item!r}\0".encode())
        return digest.hexdigest()[:20]

    @cached_property
    def paths(self) -> list[str]:
        """Return the paths below the folder that are part of the build."""
        from docker.utils.build import exclude_paths  # late on purpose: heavy

        ignore = self.folder / ".dockerignore"
        lines = ignore.read_text(encoding="utf-8").splitlines() if ignore.is_file() else []
        patterns = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        apart = [path for path in self._hidden if path.is_relative_to(self._root)]
        patterns += [path.relative_to(self._root).as_posix() for path in apart]
        found = exclude_paths(str(self.folder), patterns, dockerfile=self.dockerfile)
        # Once more by what they are: a pattern may have been taken back by a later "!" line.
        return sorted(path for path in found if not self._is_hidden(path))

    @contextmanager
    def archive(self, scratch: Path) -> Iterator[IO[bytes]]:
        """Yield what goes to the engine as a tar archive."""
        from docker.utils.build import create_archive  # late on purpose: heavy

        with tempfile.TemporaryFile(dir=scratch) as file:
            create_archive(str(self.folder), files=self.paths, fileobj=file)
            yield file

    @cached_property
    def _root(self) -> Path:
        return Path(os.path.realpath(self.folder))

    def _is_hidden(self, path: str) -> bool:
        place = self._root / path
        return any(place.is_relative_to(hidden) for hidden in self._hidden)


def _content(path: Path) -> Iterator[bytes]:
    status = path.lstat()
    yield f"{status.st_mode:o}".encode()
    if path.is_symlink():
        yield str(path.readlink()).encode()
    elif path.is_file():
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                yield chunk
