"""Sums of prepared files, taken while they are written, so that nobody has to read them again.

A sum is of one file at one time: it counts only for what still has the inode, the size and the
times that the file had when it was closed. Every change of a file, of its name or of the number of
its names moves the time of its last change, which no program can set (``st_ctime``, inode(7)).
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import IO, Any

from pytest_mlebench._files import Digest, md5

BLOCK_BYTES = 1 << 20  # of which Digest lets some wait
MIN_NOTED_BYTES = 8 << 20  # what is smaller is still in memory, and read again in no time
# A kernel may stamp files with the time of its last tick, of which there are 100 a second or more
# (CONFIG_HZ): until the next one a change would not show.
TICK_SECONDS = 0.02
COARSE_NS = 1_000_000  # whole milliseconds are the times of a file system to which a tick is little


@dataclass(frozen=True)
class FileState:
    """Which file something is, and since when it has been what it is."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> FileState:
        """Return what of a file's status tells it from any other, and from itself if it changes."""
        times = found.st_mtime_ns, found.st_ctime_ns
        return cls(found.st_dev, found.st_ino, found.st_size, *times)


class WrittenSums:
    """The md5 sums of files as they were when they had been written."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        """Take those of files with one of these *names*, in whatever folder."""
        self._names = frozenset(names)
        self._sums: dict[FileState, str] = {}

    def are_asked_for(self, path: Path) -> bool:
        """Tell whether anybody will want the sum of a file that is to be written."""
        return path.name in self._names

    def md5(self, path: Path) -> str:
        """Return the sum of a file: the one that was noted if it is the same still, or read it."""
        return self._sums.get(FileState.of(path.stat())) or md5(path)

    def note(self, descriptor: int, size: int, digest: Digest) -> None:
        """Note the sum of *size* bytes if they are the whole of a file that nobody writes any more.

        What is done to the file after this call has a later time.
        """
        state = FileState.of(os.fstat(descriptor))
        if size == state.size >= MIN_NOTED_BYTES and state.changed_ns % COARSE_NS:
            self._sums[state] = digest.hexdigest()
            time.sleep(TICK_SECONDS)

    def to_data(self) -> list[list[int | str]]:
        """Return the sums in the form of JSON, for another process on this host."""
        return [[*astuple(state), noted] for state, noted in self._sums.items()]

    @classmethod
    def from_data(cls, data: Any) -> WrittenSums:
        """Return the sums that another process has taken."""
        sums = cls()
        sums._sums = {FileState(*state): noted for *state, noted in data}
        return sums


@contextmanager
def noted_sums(names: Iterable[str]) -> Iterator[WrittenSums]:
    """Take the sums of files with some names that are written in this block, by this thread."""
    sums = WrittenSums(names)
    token = _noting.set(sums)
    try:
        yield sums
    finally:
        _noting.reset(token)


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a prepared file to be written from its start to its end; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sums = _asked(path)
    if sums is None:
        with path.open("wb") as file:
            yield file
        return
    with path.open("wb", buffering=0) as raw, closing(Digest()) as digest:
        summed = _SummedFile(raw, digest)
        with io.BufferedWriter(summed, BLOCK_BYTES) as writer:
            yield writer
        sums.note(raw.fileno(), summed.size, digest)


@contextmanager
def followed(path: Path) -> Iterator[Callable[[int], None]]:
    """Yield what to call with the end of each part of a file that other processes have written.

    A part is read while it is still in memory, before the next one is waited for.
    """
    sums = _asked(path)
    if sums is None:
        yield lambda _: None
        return
    with path.open("rb", buffering=0) as file, closing(Digest()) as digest:

        def follow(end: int) -> None:
            while block := file.read(max(0, min(BLOCK_BYTES, end - file.tell()))):
                digest.update(block)

        yield follow
        sums.note(file.fileno(), file.tell(), digest)


class _SummedFile(io.RawIOBase):
    """A file that is only ever added to, by its bytes alone: no place to go to, no descriptor."""

    def __init__(self, file: io.FileIO, digest: Digest) -> None:
        self._file = file
        self._digest = digest
        self.size = 0

    def writable(self) -> bool:
        """Tell that it can be written."""
        return True

    def write(self, data: Any) -> int:
        """Write some of the bytes, as many as may wait to be counted at a time."""
        block = bytes(memoryview(data)[:BLOCK_BYTES])  # a copy: the buffer is used again
        written = self._file.write(block)
        self._digest.update(block[:written])
        self.size += written
        return written


def _asked(path: Path) -> WrittenSums | None:
    """Return where the sum of a file belongs, if it is asked for."""
    sums = _noting.get()
    return sums if sums is not None and sums.are_asked_for(path) else None


_noting: ContextVar[WrittenSums | None] = ContextVar("_noting", default=None)
