"""Unpack a zip while it is still arriving.

What comes out early is only a head start: when the zip is complete, its index is judged as ever,
members that were unpacked and fit the index are left as they are, everything else is unpacked then.

Measured on two cores with 50 000 files in 1.5 GB: at 100 MB/s a dataset is there after 19 s instead
of 23 s (the 4 to 6 s of unpacking are gone), from a server on the same machine after 9 s instead of
10 to 14 s; at 30 MB/s, where the download is nearly everything, nothing is gained. And a zip larger
than the memory is read once from the page cache instead of a second time from the disk.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO
from zipfile import ZipInfo

from pytest_mlebench.archives.entries import MAX_RATIO, MAX_UNCHECKED_BYTES, check_name
from pytest_mlebench.archives.unzip import (
    ENCRYPTED,
    KNOWN_METHODS,
    MAX_WHOLE_BYTES,
    SIGNATURE,
    Done,
    Unpacking,
)
from pytest_mlebench.errors import PreparationError
from pytest_mlebench.host.child_process import serve, started

# A local file header, APPNOTE.TXT 4.3.7: signature, flags, method, checksum, sizes, lengths of name
# and extra field. Flags, 4.4.4: the sizes come after the data (bit 3), the name is UTF-8 (bit 11).
# Sizes of the value ZIP64 are in the extra field, 4.5.3.
LOCAL = struct.Struct("<4s2xHH4xLLLHH")
DESCRIPTOR = 1 << 3
UTF8 = 1 << 11
ZIP64 = 0xFFFFFFFF

MIN_FOLLOWED_BYTES = 16 << 20  # from which on a child pays
WINDOW_BYTES = 4 << 20
MEMBERS_PER_LOOK = 32  # between two looks at the input
CHECK = "check"


class EarlyUnzip:
    """Have a child process follow a growing zip and unpack the members that have arrived."""

    def __init__(self, archive: Path, target: Path, *, check: bool = True) -> None:
        """Follow *archive*; without *check* its own checksum is to vouch for its members."""
        self.archive, self.target, self.check = archive, target, check
        self._stack = ExitStack()
        self._child: subprocess.Popen[bytes] | None = None

    def grow(self, size: int) -> None:
        """Tell how many bytes have arrived."""
        if self._child is None:
            if size < MIN_FOLLOWED_BYTES:
                return
            arguments = (str(self.archive), str(self.target), CHECK if self.check else "trust")
            self._child = self._stack.enter_context(started(__name__, *arguments))
            os.set_blocking(_stdin(self._child).fileno(), False)
        # A child that lags need not know of every step, and one that died will be missed later.
        with suppress(BlockingIOError, BrokenPipeError):
            os.write(_stdin(self._child).fileno(), f"{size}\n".encode())

    def restart(self) -> None:
        """Forget what has arrived: it comes again from the beginning."""
        self.finish()
        shutil.rmtree(self.target, ignore_errors=True)

    def finish(self) -> Done:
        """Return what has been unpacked; the rest is for the unpacking proper."""
        child, self._child = self._child, None
        if child is None:
            return {}
        os.set_blocking(_stdin(child).fileno(), True)
        out, _ = child.communicate()  # the end of its input is the end of its work
        self._stack.close()
        try:
            return {int(offset): tuple(facts) for offset, facts in json.loads(out).items()}
        except (ValueError, AttributeError):
            shutil.rmtree(self.target, ignore_errors=True)
            return {}


def _stdin(child: subprocess.Popen[bytes]) -> IO[bytes]:
    if child.stdin is None:
        raise ValueError("a child without input")  # never: it was asked for
    return child.stdin


class Follower:
    """The child: unpack what has arrived until the input ends."""

    def __init__(self, archive: Path, target: Path, *, check: bool) -> None:
        self.archive, self.target, self.check = archive, target, check
        self.arrived = 0
        self.ended = False
        self.done: Done = {}
        self._folders: set[str] = set()

    def run(self) -> None:
        """Unpack until the input ends or something unusual comes."""
        try:
            with self.archive.open("rb") as file:
                window = _Window(file.fileno())
                work = Unpacking(self.archive, file.fileno(), self.target, check=self.check)
                for number, info in enumerate(self._members(window)):
                    self.done[info.header_offset] = (info.filename, -1, -1)
                    self._unpack(info, window, work)
                    self.done[info.header_offset] = (info.filename, info.file_size, info.CRC)
                    if number % MEMBERS_PER_LOOK == 0:
                        self.listen(wait=False)
                    if self.ended:
                        return
        except (OSError, PreparationError):
            return  # the unpacking proper will meet it again, and say so

    def listen(self, *, wait: bool) -> None:
        """Take in how much has arrived."""
        if not wait and not select.select([0], [], [], 0)[0]:
            return
        text = os.read(0, 1 << 16)
        self.ended = not text
        lines = text.split(b"\n")[:-1]
        self.arrived = max([self.arrived, *map(int, lines)])

    def _unpack(self, info: ZipInfo, window: _Window, work: Unpacking) -> None:
        folder = info.filename.rpartition("/")[0]
        if folder not in self._folders:
            (self.target / folder).mkdir(parents=True, exist_ok=True)
            self._folders.add(folder)
        if info.compress_size > MAX_WHOLE_BYTES:
            work.unpack([info])
            return
        start = info.header_offset + _skip(window.read(info.header_offset, LOCAL.size))
        work.write(info, (work.content(info, window.read(start, info.compress_size)),))

    def _wait_for(self, size: int) -> bool:
        """Wait until so many bytes are there; tell whether they are."""
        while self.arrived < size and not self.ended:
            self.listen(wait=True)
        return self.arrived >= size

    def _members(self, window: _Window) -> Iterator[ZipInfo]:
        """Yield the files that lie whole in what has arrived, as long as all is as usual."""
        offset = total = 0
        names: set[str] = set()
        while self._wait_for(offset + LOCAL.size):
            info = self._header(window, offset)
            if info is None or info.filename in names:
                return
            end = offset + _skip(window.read(offset, LOCAL.size)) + info.compress_size
            total += info.file_size
            if (total > MAX_UNCHECKED_BYTES and total > end * MAX_RATIO) or not self._wait_for(end):
                return
            check_name(self.archive, info.filename)
            if not info.is_dir():
                names.add(info.filename)
                yield info
            offset = end

    def _header(self, window: _Window, offset: int) -> ZipInfo | None:
        """Return the member that begins at *offset*."""
        block = window.read(offset, LOCAL.size)
        signature, flags, method, checksum, packed, size, length, _ = LOCAL.unpack(block)
        usual = method in KNOWN_METHODS and ZIP64 not in (packed, size)
        if signature != SIGNATURE or flags & (ENCRYPTED | DESCRIPTOR) or not usual:
            return None
        if not self._wait_for(offset + LOCAL.size + length):
            return None
        text = bytes(window.read(offset + LOCAL.size, length))
        info = ZipInfo()
        info.filename = text.decode("utf-8" if flags & UTF8 else "cp437", errors="replace")
        info.compress_type, info.CRC = method, checksum
        info.compress_size, info.file_size, info.header_offset = packed, size, offset
        return info


class _Window:
    """A part of a file in memory, moved on when something beyond it is wanted."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.offset = 0
        self.block = memoryview(b"")

    def read(self, offset: int, size: int) -> memoryview:
        """Return bytes that have arrived."""
        start = offset - self.offset
        if start < 0 or start + size > len(self.block):
            self.block = memoryview(os.pread(self.descriptor, max(size, WINDOW_BYTES), offset))
            self.offset, start = offset, 0
        return self.block[start : start + size]


def _skip(header: memoryview) -> int:
    """Return how far the data are from the beginning of a local header."""
    *_, name, extra = LOCAL.unpack(header)
    return LOCAL.size + int(name) + int(extra)


def _follow(archive: str, target: str, check: str) -> None:
    follower = Follower(Path(archive), Path(target), check=check == CHECK)
    follower.run()
    while not follower.ended:  # there is nothing more to do, but somebody to report to
        follower.listen(wait=True)
    sys.stdout.write(json.dumps(follower.done))


if __name__ == "__main__":
    sys.exit(serve(_follow))
