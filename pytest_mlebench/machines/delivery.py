"""How the folder of an attempt comes from the host that ran it to the run's own folder.

While the attempt runs, its record and the growing files come as they are. In the end all files come
in pieces to a folder beside the run's, are compared with their sha256, and are put into place by
renaming, the record last: it says that the attempt is over, and by then everything else is there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_mlebench.errors import InfrastructureError
from pytest_mlebench.layout import AttemptFolder, RunFolder
from pytest_mlebench.machines.link import Link

PIECE_BYTES = 1 << 20
TAIL_BYTES = 1 << 18  # of a growing file, at a time
INCOMING = ".incoming"  # in the run's folder

_ATTEMPT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/seed[0-9]+/attempt[0-9]+")


class Incoming:
    """The controller's end: nothing that a host sends gets outside of its attempt's folder."""

    def __init__(self, run: RunFolder) -> None:
        self._run = run

    def attempt(self, name: str) -> AttemptFolder:
        """Return the folder of an attempt by its name, ``COMPETITION/seedK/attemptN``."""
        if not _ATTEMPT.fullmatch(name) or ".." in name:
            raise InfrastructureError(f"not an attempt: {name!r}")
        return AttemptFolder(self._run.path / name)

    def tail(self, name: str, file: str, offset: int, data: bytes) -> None:
        """Append what a growing file has more; one of another length is begun anew."""
        path = _inside(self.attempt(name).path, file)
        known = path.stat().st_size if path.is_file() and not path.is_symlink() else -1
        if offset not in (0, known):
            raise InfrastructureError(f"{file} has {known} bytes here, not {offset}")
        with path.open("ab" if offset else "wb") as out:
            out.write(data)

    def piece(self, name: str, file: str, offset: int, data: bytes) -> None:
        """Take a piece of a file."""
        path = _inside(self._part(name), file)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("r+b" if offset else "wb") as out:
            out.seek(offset)
            out.write(data)

    def place(self, name: str, manifest: Mapping[str, str]) -> None:
        """Compare all files that came with their sha256, and put them where they belong."""
        part, target = self._part(name), self.attempt(name)
        for file, expected in manifest.items():
            if _sha256(_inside(part, file)) != expected:
                raise InfrastructureError(f"{name}/{file} arrived damaged")
        record = target.record.name
        for file in sorted(manifest, key=lambda file: file == record):
            path = _inside(target.path, file)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _inside(part, file).replace(path)
        shutil.rmtree(part)
        with contextlib.suppress(OSError):  # another attempt is on its way
            part.parent.rmdir()

    def discard(self) -> None:
        """Remove what an earlier session has not received to the end."""
        shutil.rmtree(self._run.path / INCOMING, ignore_errors=True)

    def _part(self, name: str) -> Path:
        self.attempt(name)
        return self._run.path / INCOMING / name.replace("/", "+")


def send_attempt(link: Link, folder: Path, name: str, record: bytes) -> None:
    """Deliver all files of an attempt; the record is given, for its paths are another host's."""
    manifest = {}
    record_name = AttemptFolder(folder).record.name
    for path in delivered_files(folder):
        file = path.relative_to(folder).as_posix()
        manifest[file] = _send_file(link, path, name, file)
    link.ask("piece", name=name, file=record_name, offset=0, data=record)
    manifest[record_name] = hashlib.sha256(record).hexdigest()
    link.ask("place", name=name, manifest=manifest)


def delivered_files(folder: Path) -> Iterator[Path]:
    """Yield the files of an attempt that travel: no links, no workspace, nothing hidden."""
    attempt = AttemptFolder(folder)
    for root, folders, files in os.walk(folder):
        place = Path(root)
        folders[:] = [each for each in folders if place / each != attempt.home]
        for name in sorted(files):
            path = place / name
            own = place == folder and (name.startswith(".") or path == attempt.record)
            if not own and path.is_file() and not path.is_symlink():
                yield path


def send_tails(link: Link, folder: Path, name: str, sent: dict[str, int]) -> None:
    """Send what the growing files of an attempt have more than before."""
    attempt = AttemptFolder(folder)
    for path in (attempt.log, attempt.stats, attempt.calls):
        offset = sent.get(path.name, 0)
        try:
            with path.open("rb") as file:
                file.seek(offset)
                data = file.read(TAIL_BYTES)
        except OSError:
            continue
        if path == attempt.calls:  # figures are read from it: whole lines only
            data = data[: data.rfind(b"\n") + 1]
        if data:
            link.ask("tail", name=name, file=path.name, offset=offset, data=data)
            sent[path.name] = offset + len(data)


def _send_file(link: Link, path: Path, name: str, file: str) -> str:
    digest, offset = hashlib.sha256(), 0
    with path.open("rb") as source:
        while True:
            data = source.read(PIECE_BYTES)
            if data or offset == 0:
                link.ask("piece", name=name, file=file, offset=offset, data=data)
            if not data:
                return digest.hexdigest()
            digest.update(data)
            offset += len(data)


def _inside(folder: Path, file: str) -> Path:
    """Return a file below a folder, or refuse one that would be elsewhere."""
    parts = file.split("/")
    if not file or any(part in ("", ".", "..") for part in parts) or "\0" in file:
        raise InfrastructureError(f"not a file of an attempt: {file!r}")
    path = folder
    for part in parts[:-1]:
        path = path / part
        if path.is_symlink():
            raise InfrastructureError(f"not a file of an attempt: {file!r}")
    return path / parts[-1]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def plain(record: Mapping[str, Any], run: str) -> dict[str, Any]:
    """Return a record whose grade tells where the attempt is for the controller."""
    grade = record.get("grade")
    return dict(record) if not grade else {**record, "grade": {**grade, "run": run}}
