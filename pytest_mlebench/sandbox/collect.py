"""Take what an agent left out of its workspace, trusting nothing in it.

    collected = collect(home, limits, submission=job.submission, artefacts=job.artefacts)
    collected.problem      # why there is no submission, in one sentence, or None
    collected.notes        # what else was left behind, a sentence each

*home* is any folder that has the contract's ``submission``, ``logs`` and ``code`` in it: a
workspace, a folder that was bound into a container, or a tree extracted from one. Whoever wrote
there must have ended before. Links are never followed, at no level; only regular files with a
single name are read, by descriptor and bounded in size and number; nothing is moved or renamed.
``remove_tree`` deletes such a tree, however deep it is and whatever its permissions are.
"""

from __future__ import annotations

import itertools
import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from pytest_mlebench._files import atomic_file
from pytest_mlebench._units import show_size
from pytest_mlebench.errors import SandboxError
from pytest_mlebench.limits import Limits
from pytest_mlebench.sandbox import Job, Reason
from pytest_mlebench.sandbox.kept_files import portable_name
from pytest_mlebench.sandbox.redact import Mask, redact_text

SUBMISSION = "submission.csv"
FOLDERS = ("logs", "code")
NO_SUBMISSION = "the agent left no submission.csv in its submission folder"

_CHUNK = 1 << 20
_PATH = 3_000  # bytes of a path: less than the system's limit, more than anybody reads
_NOTES = 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KINDS = {
    stat.S_IFREG: "a regular file",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


class NotCollected(Exception):
    """Say in one sentence why something is not collected."""


@dataclass
class Collected:
    """What came out of a workspace."""

    problem: str | None = None
    notes: list[str] = field(default_factory=list)
    files: int = 0
    bytes: int = 0


def collect(
    home: Path,
    limits: Limits,
    *,
    submission: Path,
    artefacts: Path,
    secrets: Iterable[str] = (),
) -> Collected:
    """Copy the submission, and the artefacts without *secrets*; raise SandboxError if we cannot."""
    collected = Collected()
    try:
        with _opened_folder(str(home), None, "the workspace") as root:
            collected.problem = _take_submission(root, submission, limits.submission_bytes)
            _Artefacts(collected, limits, secrets).take(root, artefacts)
    except NotCollected as problem:
        collected.problem = str(problem)
    except OSError as problem:
        raise SandboxError(
            f"cannot collect into {submission.parent}: {problem.strerror or problem}"
        ) from problem
    return collected


def collect_after(reason: Reason, job: Job, home: Path) -> Collected:
    """Collect what a job's agent left; one that filled the disk is to blame if that fails."""
    try:
        return collect(
            home,
            job.limits,
            submission=job.submission,
            artefacts=job.artefacts,
            secrets=job.agent.secrets(),
        )
    except SandboxError as problem:
        if reason not in {"disk-limit", "files-limit"}:
            raise
        return Collected(problem=str(problem))


def take_file(folder: int, name: str, target: Path, max_bytes: int) -> int:
    """Copy the file *name* of an open folder to *target*, or raise Refused; return its size."""
    with _opened_file(folder, name, name, max_bytes) as source, atomic_file(target) as temporary:
        return _copy(source, temporary, name, max_bytes)


def read_submission(home: Path, target: IO[bytes], max_bytes: int) -> str | None:
    """Copy the submission of an agent that may be at work; return why there is none, if so."""
    try:
        with (
            _opened_folder(str(home), None, "the workspace") as root,
            _opened_folder("submission", root, "the submission folder") as folder,
            _opened_file(folder, SUBMISSION, SUBMISSION, max_bytes) as source,
        ):
            _pour(source, target, SUBMISSION, max_bytes)
    except FileNotFoundError:
        return NO_SUBMISSION
    except NotCollected as problem:
        return str(problem)
    return None


def remove_tree(path: Path) -> None:
    """Delete a hostile tree: any depth, any permissions, without ever following a link."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(status.st_mode):
        path.unlink()
        return
    with _opened_folder(str(path), None, str(path)) as root:
        unguessable = uuid.uuid4().hex
        fresh = (f".{unguessable}-{number}" for number in itertools.count())
        while names := _first_names(root):
            for name in names:
                _remove_entry(root, name, fresh)
    path.rmdir()


def _take_submission(root: int, target: Path, max_bytes: int) -> str | None:
    try:
        with _opened_folder("submission", root, "the submission folder") as folder:
            take_file(folder, SUBMISSION, target, max_bytes)
    except FileNotFoundError:
        return NO_SUBMISSION
    except NotCollected as problem:
        return str(problem)
    return None


class _Artefacts:
    """A walk over folders that stops at the limits and keeps account of what it skips."""

    def __init__(self, collected: Collected, limits: Limits, secrets: Iterable[str]) -> None:
        self._collected = collected
        self._secrets = tuple(secrets)
        self._limits = limits
        self._entries = 0
        self._skipped = 0

    def take(self, root: int, target: Path) -> None:
        remove_tree(target)
        target.mkdir(parents=True)
        for name in FOLDERS:
            self._take_folder(root, name, target / name, name)
        if self._skipped > _NOTES:
            self._collected.notes.append(f"{self._skipped - _NOTES} more were left behind")

    def _take_folder(self, parent: int, name: str, target: Path, shown: str) -> None:
        try:
            _require_short(target, shown)
            with _opened_folder(name, parent, shown) as folder:
                target.mkdir()
                for entry, is_folder in self._entries_of(folder, shown):
                    take = self._take_folder if is_folder else self._take_file
                    name = redact_text(entry, self._secrets)
                    take(folder, entry, target / portable_name(name), f"{shown}/{name}")
        except FileNotFoundError:
            self._note(f"the agent removed its folder {shown}")
        except NotCollected as problem:
            self._note(str(problem))

    def _take_file(self, folder: int, name: str, target: Path, shown: str) -> None:
        left = self._limits.artefact_bytes - self._collected.bytes
        try:
            _require_short(target, shown)
            with _opened_file(folder, name, shown, left) as source:
                self._collected.bytes += _copy(source, target, shown, left, self._secrets)
                self._collected.files += 1
        except FileNotFoundError:
            self._note(f"{shown} has vanished")
        except NotCollected as problem:
            self._note(str(problem))

    def _entries_of(self, folder: int, shown: str) -> list[tuple[str, bool]]:
        left = max(0, self._limits.artefact_files - self._entries)
        with os.scandir(folder) as found:
            entries = [
                (entry.name, entry.is_dir(follow_symlinks=False))
                for entry in itertools.islice(found, left + 1)
            ]
        if len(entries) > left:
            self._note(
                f"{shown} is not complete: "
                f"more than {self._limits.artefact_files} files in logs and code"
            )
        self._entries += min(len(entries), left)
        return sorted(entries)[:left]

    def _note(self, sentence: str) -> None:
        self._skipped += 1
        if self._skipped <= _NOTES:
            self._collected.notes.append(_printable(sentence))


@contextmanager
def _opened_folder(name: str, parent: int | None, shown: str) -> Iterator[int]:
    """Open a folder without following a link, even one whose permissions the agent took away."""
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        raise NotCollected(f"{shown} is {_kind(status)}, not a folder")
    try:
        descriptor = _open_folder(name, parent)
    except NotADirectoryError:
        raise NotCollected(f"{shown} is not a folder") from None
    except PermissionError:
        raise NotCollected(f"{shown} cannot be read: permission denied") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_folder(name: str, parent: int | None) -> int:
    """Open a folder, giving ourselves access to it first if it is ours and closed to us."""
    if hasattr(os, "O_PATH"):
        handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
        try:
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            if mode & stat.S_IRWXU != stat.S_IRWXU:
                # by way of /proc: chmod by name would follow a link that is put there just now
                Path(f"/proc/self/fd/{handle}").chmod(mode | stat.S_IRWXU)
        finally:
            os.close(handle)
    return os.open(name, _DIRECTORY, dir_fd=parent)


@contextmanager
def _opened_file(folder: int, name: str, shown: str, max_bytes: int) -> Iterator[int]:
    """Open a regular file that has one name only and is not too large."""
    _require_plain(os.stat(name, dir_fd=folder, follow_symlinks=False), shown, max_bytes)
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except PermissionError:
        raise NotCollected(f"{shown} cannot be read: permission denied") from None
    except OSError as problem:
        raise NotCollected(f"{shown} cannot be read: {(problem.strerror or '').lower()}") from None
    try:
        _require_plain(os.fstat(descriptor), shown, max_bytes)  # of what really was opened
        yield descriptor
    finally:
        os.close(descriptor)


def _require_plain(status: os.stat_result, shown: str, max_bytes: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotCollected(f"{shown} is {_kind(status)}, not a regular file")
    if status.st_nlink != 1:
        raise NotCollected(f"{shown} is a hard link: the same file has {status.st_nlink} names")
    if status.st_size > max_bytes:
        raise _too_large(shown, status.st_size, max_bytes)


def _copy(
    source: int, target: Path, shown: str, max_bytes: int, secrets: Iterable[str] = ()
) -> int:
    with target.open("wb") as file:
        return _pour(source, file, shown, max_bytes, secrets)


def _pour(
    source: int, target: IO[bytes], shown: str, max_bytes: int, secrets: Iterable[str] = ()
) -> int:
    size = 0
    mask = Mask(secrets)
    while chunk := os.read(source, min(_CHUNK, max_bytes - size + 1)):
        size += len(chunk)
        if size > max_bytes:  # it grew, or it is a file that does not tell its size
            raise _too_large(shown, size, max_bytes)
        target.write(mask.feed(chunk))
    target.write(mask.finish())
    return size


def _too_large(shown: str, size: int, max_bytes: int) -> NotCollected:
    return NotCollected(
        f"{shown} is too large: {show_size(size)}, allowed are {show_size(max_bytes)}"
    )


def _require_short(target: Path, shown: str) -> None:
    if len(os.fsencode(target)) > _PATH:
        raise NotCollected(f"{shown} is nested too deeply")


def _printable(sentence: str) -> str:
    """Return a sentence in which the agent's file names cannot play tricks on a terminal."""
    shown = sentence if len(sentence) < 300 else f"{sentence[:150]} … {sentence[-100:]}"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown
    )


def _kind(status: os.stat_result) -> str:
    return _KINDS.get(stat.S_IFMT(status.st_mode), "something unusual")


def _first_names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in itertools.islice(entries, 1000)]


def _remove_entry(root: int, name: str, fresh: Iterator[str]) -> None:
    """Remove an entry of *root*; a folder's own folders are hung up in *root* for later."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=root, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=root)
        return
    with _opened_folder(name, root, name) as folder:
        while names := _first_names(folder):
            for inner in names:
                status = os.stat(inner, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    os.close(_open_folder(inner, folder))  # only a writable one can be moved
                    os.rename(inner, next(fresh), src_dir_fd=folder, dst_dir_fd=root)
                else:
                    os.unlink(inner, dir_fd=folder)
    os.rmdir(name, dir_fd=root)
