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
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from pytest_mlebench.errors import InfrastructureError
from pytest_mlebench.layout import AttemptFolder, RunFolder
from pytest_mlebench.machines.link import Link, Reply

PIECE_BYTES = 1 << 20
WINDOW = 8  # pieces that may be on their way at the same time
COPY_BYTES = 100_000_000  # of a file that is rather copied by an ssh of its own
COPY_POLL_SECONDS = 0.5
SEND_TRIES = 3  # of what arrives damaged
TAIL_BYTES = 1 << 18  # of a growing file, at a time
INCOMING = ".incoming"  # in the run's folder

_ATTEMPT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/seed[0-9]+/attempt[0-9]+")


class Conversation(Protocol):
    """What a delivery needs of a link: an answer, or one that is going to come."""

    def ask(self, question: str, **data: Any) -> Any:
        """Ask the controller and return its answer."""

    def post(self, question: str, **data: Any) -> Reply:
        """Ask the controller, and return what its answer comes to."""


class LeasedLink:
    """A link for questions about one attempt, each with the token of its lease."""

    def __init__(self, link: Link, name: str, lease: str | None) -> None:
        self._link = link
        self._about = {"name": name, "lease": lease}

    def ask(self, question: str, **data: Any) -> Any:
        """Ask the controller and return its answer."""
        return self._link.ask(question, **self._about, **data)

    def post(self, question: str, **data: Any) -> Reply:
        """Ask the controller, and return what its answer comes to."""
        return self._link.post(question, **self._about, **data)


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

    def part(self, name: str, file: str) -> Path:
        """Return where a file of an attempt arrives that is copied as a whole."""
        path = _inside(self._part(name), file)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def place(self, name: str, manifest: Mapping[str, str]) -> list[str]:
        """Compare all files that came with their sha256, and put them where they belong.

        Return those that are damaged: then nothing was put anywhere, and they have to come again.
        """
        part, target = self._part(name), self.attempt(name)
        damaged = [file for file in manifest if not _has_sum(_inside(part, file), manifest[file])]
        if damaged:
            return damaged
        record = target.record.name
        for file in sorted(manifest, key=lambda file: file == record):
            path = _inside(target.path, file)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _inside(part, file).replace(path)
        shutil.rmtree(part)
        with contextlib.suppress(OSError):  # another attempt is on its way
            part.parent.rmdir()
        return []

    def discard(self) -> None:
        """Remove what an earlier session has not received to the end."""
        shutil.rmtree(self._run.path / INCOMING, ignore_errors=True)

    def _part(self, name: str) -> Path:
        self.attempt(name)
        return self._run.path / INCOMING / name.replace("/", "+")


def send_attempt(link: Conversation, folder: Path, record: bytes) -> None:
    """Deliver all files of an attempt; the record is given, for its paths are another host's."""
    manifest = {}
    record_name = AttemptFolder(folder).record.name
    for path in delivered_files(folder):
        file = path.relative_to(folder).as_posix()
        copied = path.stat().st_size >= COPY_BYTES and _copy_file(link, path, file)
        manifest[file] = _sha256(path) if copied else _send_file(link, path, file)
    link.ask("piece", file=record_name, offset=0, data=record)
    manifest[record_name] = hashlib.sha256(record).hexdigest()
    for _ in range(SEND_TRIES):
        damaged = link.ask("place", manifest=manifest)
        if not damaged:
            return
        for file in damaged:
            if file == record_name:
                link.ask("piece", file=file, offset=0, data=record)
            else:
                manifest[file] = _send_file(link, folder / file, file)
    raise InfrastructureError(f"{damaged[0]} of {folder} arrived damaged {SEND_TRIES} times")


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


def send_tails(link: Conversation, folder: Path, sent: dict[str, int]) -> None:
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
            link.ask("tail", file=path.name, offset=offset, data=data)
            sent[path.name] = offset + len(data)


def _send_file(link: Conversation, path: Path, file: str) -> str:
    """Send a file in pieces, some of them before the first has been answered."""
    digest, offset = hashlib.sha256(), 0
    waiting: deque[Reply] = deque()
    with path.open("rb") as source:
        while (data := source.read(PIECE_BYTES)) or offset == 0:
            waiting.append(link.post("piece", file=file, offset=offset, data=data))
            digest.update(data)
            offset += len(data)
            if len(waiting) >= WINDOW:
                waiting.popleft().wait()
            if not data:
                break
    while waiting:
        waiting.popleft().wait()
    return digest.hexdigest()


def _copy_file(link: Conversation, path: Path, file: str) -> bool:
    """Let the controller copy a large file by a program for that; tell whether it has."""
    state = link.ask("copy", file=file, path=str(path.absolute()))
    while state == "copying":
        time.sleep(COPY_POLL_SECONDS)
        state = link.ask("copied", file=file)
    return bool(state == "copied")


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


def _has_sum(path: Path, sha256: str) -> bool:
    return path.is_file() and not path.is_symlink() and _sha256(path) == sha256


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def plain(record: Mapping[str, Any], run: str) -> dict[str, Any]:
    """Return a record whose grade tells where the attempt is for the controller."""
    grade = record.get("grade")
    return dict(record) if not grade else {**record, "grade": {**grade, "run": run}}
