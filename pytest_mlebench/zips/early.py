"""Unpack a zip while it is still arriving.

What comes out early is only a head start: when the zip is complete, its index is judged as ever,
members that were unpacked and fit the index are left as they are, everything else is unpacked then.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from pytest_mlebench.children import serve, started
from pytest_mlebench.errors import PreparationError
from pytest_mlebench.zips.entries import FREE_RATIO, MAX_RATIO, check_name
from pytest_mlebench.zips.unzip import ENCRYPTED, SIGNATURE, Done, Unpacking

LOCAL = struct.Struct("<4s2xHH4xLLLHH")  # flags, method, checksum, sizes, lengths of name and extra
DESCRIPTOR = 0x8  # the sizes come after the data: they cannot be known beforehand
UTF8 = 0x800
ZIP64 = 0xFFFFFFFF
WORTH_IT = 16 << 20  # bytes from which on a child pays


class EarlyUnzip:
    """Have a child process follow a growing zip and unpack the members that have arrived."""

    def __init__(self, archive: Path, target: Path) -> None:
        self.archive, self.target = archive, target
        self._stack = ExitStack()
        self._child: subprocess.Popen[bytes] | None = None

    def grow(self, size: int) -> None:
        """Tell how many bytes have arrived."""
        if size < WORTH_IT:
            return
        if self._child is None:
            arguments = (str(self.archive), str(self.target))
            self._child = self._stack.enter_context(started(__name__, *arguments))
            os.set_blocking(_stdin(self._child).fileno(), False)
        # A child that lags need not hear of every step, and one that died will be missed later.
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

    def __init__(self, archive: Path, target: Path) -> None:
        self.archive, self.target = archive, target
        self.arrived = 0
        self.ended = False
        self.done: Done = {}

    def run(self) -> None:
        """Unpack until the input ends or something unusual comes."""
        try:
            with self.archive.open("rb") as file:
                work = Unpacking(self.archive, file.fileno(), self.target)
                for info in self._members(file.fileno()):
                    self.done[info.header_offset] = (info.filename, -1, -1)
                    work.unpack([info])
                    self.done[info.header_offset] = (info.filename, info.file_size, info.CRC)
                    self._listen(wait=False)
                    if self.ended:
                        return
        except (OSError, PreparationError):
            return  # the unpacking proper will meet it again, and say so

    def _wait_for(self, size: int) -> bool:
        """Wait until so many bytes are there; tell whether they are."""
        while self.arrived < size and not self.ended:
            self._listen(wait=True)
        return self.arrived >= size

    def _listen(self, *, wait: bool) -> None:
        if not wait and not select.select([0], [], [], 0)[0]:
            return
        text = os.read(0, 1 << 16)
        self.ended = not text
        lines = text.split(b"\n")[:-1]
        self.arrived = max([self.arrived, *map(int, lines)])

    def _members(self, descriptor: int) -> Iterator[zipfile.ZipInfo]:
        """Yield the files that lie whole in what has arrived, as long as all is as usual."""
        offset = total = 0
        names: set[str] = set()
        folders: set[str] = set()
        while self._wait_for(offset + LOCAL.size):
            info, start = self._header(descriptor, offset)
            if info is None or info.filename in names or not self._wait_for(start):
                return
            end = start + info.compress_size
            total += info.file_size
            if total > FREE_RATIO and total > end * MAX_RATIO:
                return
            check_name(self.archive, info.filename)
            if not self._wait_for(end):
                return
            if not info.is_dir():
                names.add(info.filename)
                self._make_folder(info.filename, folders)
                yield info
            offset = end

    def _make_folder(self, name: str, known: set[str]) -> None:
        folder = name.rpartition("/")[0]
        if folder not in known:
            (self.target / folder).mkdir(parents=True, exist_ok=True)
            known.add(folder)

    def _header(self, descriptor: int, offset: int) -> tuple[zipfile.ZipInfo | None, int]:
        """Return the member that begins at *offset* and where its data begin."""
        block = os.pread(descriptor, LOCAL.size, offset)
        signature, flags, method, checksum, packed, size, name, extra = LOCAL.unpack(block)
        usual = method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) and ZIP64 not in (packed, size)
        if signature != SIGNATURE or flags & (ENCRYPTED | DESCRIPTOR) or not usual:
            return None, 0
        start = offset + LOCAL.size + name + extra
        if not self._wait_for(start):
            return None, 0
        text = os.pread(descriptor, name, offset + LOCAL.size)
        info = zipfile.ZipInfo()
        info.filename = text.decode("utf-8" if flags & UTF8 else "cp437", errors="replace")
        info.compress_type, info.CRC = method, checksum
        info.compress_size, info.file_size, info.header_offset = packed, size, offset
        return info, start


def _follow(archive: str, target: str) -> None:
    follower = Follower(Path(archive), Path(target))
    follower.run()
    while not follower.ended:  # there is nothing more to do, but somebody to report to
        follower._listen(wait=True)
    sys.stdout.write(json.dumps(follower.done))


if __name__ == "__main__":
    sys.exit(serve(_follow))
