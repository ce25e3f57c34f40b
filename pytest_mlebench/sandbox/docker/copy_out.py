"""Bring home what an agent left inside a container: bounded, and nothing but files and folders.

What lands in the home folder is then collected like the rest. An archive is read as it comes;
names that lead elsewhere, links and devices stay where they are.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.limits import Limits
from pytest_mlebench.sandbox.account import HOME
from pytest_mlebench.sandbox.docker.container import Container

SUBMISSION = "submission/submission.csv"
FOLDERS = ("logs", "code")

# The kinds of files as the engine's language numbers them.
_FOLDER, _LINK, _PIPE = 1 << 31, 1 << 27, 1 << 25
_SPECIAL = _FOLDER | _LINK | _PIPE | 1 << 26 | 1 << 24 | 1 << 21
_CHUNK = 1 << 20


def fetch(container: Container, home: Path, limits: Limits) -> None:
    """Copy the submission and the artefacts of a container that has ended to *home*."""
    try:
        _fetch_submission(container, home / SUBMISSION, limits.submission_bytes)
        _fetch_artefacts(container, home, limits)
    except tarfile.TarError as problem:
        raise SandboxError(f"cannot bring home what the agent left: {problem}") from problem


def _fetch_artefacts(container: Container, home: Path, limits: Limits) -> None:
    left = _Left(limits.artefact_bytes, limits.artefact_files)
    for name in FOLDERS:
        with container.copy_out(f"{HOME}/{name}") as found:
            if found is None:
                (home / name).rmdir()  # as the agent did
            else:
                _unpack(found[0], home, left)


class _Left:
    """How much more may be brought home."""

    def __init__(self, size: int, files: int) -> None:
        self.bytes = size
        self.files = files + 1  # one too many, so that whoever collects notices


def _fetch_submission(container: Container, target: Path, max_bytes: int) -> None:
    with container.copy_out(f"{HOME}/{SUBMISSION}") as found:
        if found is not None:
            _take_submission(*found, target, max_bytes)


def _take_submission(
    chunks: Iterator[bytes], facts: Mapping[str, Any], target: Path, max_bytes: int
) -> None:
    mode, size = int(facts["mode"]), int(facts["size"])
    if mode & _SPECIAL:
        _stand_in(target, mode)
    elif size > max_bytes:
        with target.open("wb") as file:
            file.truncate(size)  # takes no space, and is refused for its size
    else:
        with tarfile.open(fileobj=_Reader(chunks), mode="r|") as tar:  # type: ignore[call-overload]
            member = tar.next()
            if member is not None and member.isfile():
                _write(tar, member, target)


def _stand_in(target: Path, mode: int) -> None:
    """Make something of the same kind, which is refused for what it is."""
    if mode & _FOLDER:
        target.mkdir()
    elif mode & _LINK:
        target.symlink_to("elsewhere")
    elif mode & _PIPE:
        os.mkfifo(target)
    else:
        target.symlink_to("special")


def _unpack(chunks: Iterator[bytes], home: Path, left: _Left) -> None:
    with tarfile.open(fileobj=_Reader(chunks), mode="r|") as tar:  # type: ignore[call-overload]
        for member in tar:
            target = _target(home, member.name)
            if target is None or not (member.isfile() or member.isdir()):
                continue
            left.files -= 1
            if left.files < 0 or member.size > left.bytes:
                _leave_a_trace(target, member.size)
                return  # the rest is not read: it may be endless
            with suppress(OSError):  # a name that this file system cannot have
                if member.isdir():
                    target.mkdir(exist_ok=True)
                else:
                    left.bytes -= member.size
                    _write(tar, member, target)


def _leave_a_trace(target: Path, size: int) -> None:
    """Make a file of that size without content, so that the loss is noted by whoever collects."""
    with suppress(OSError), target.open("xb") as file:
        file.truncate(size)


def _target(home: Path, name: str) -> Path | None:
    parts = PurePosixPath(name).parts
    safe = parts and parts[0] in FOLDERS and not any(part in {"..", "/"} for part in parts)
    return home.joinpath(*parts) if safe else None


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    source = tar.extractfile(member)
    if source is None:
        return
    # No link is ever made below home, so none can be followed; an existing file is not replaced.
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        while chunk := source.read(_CHUNK):
            file.write(chunk)


class _Reader:
    """A file that is read from chunks as they come."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, fewer than asked for only at the end."""
        pieces, wanted = [self._rest], size - len(self._rest)
        while wanted > 0 and (chunk := next(self._chunks, None)) is not None:
            pieces.append(chunk)
            wanted -= len(chunk)
        data = b"".join(pieces)
        self._rest = data[size:]
        return data[:size]
