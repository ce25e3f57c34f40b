"""Writing zips: members from files, packed on all cores, or from other zips, as they are there."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pytest_mlebench.archives.deflate import BLOCK_BYTES, crc32, deflated, packed
from pytest_mlebench.archives.zip_members import ZipMember

MODE = (stat.S_IFREG | 0o644) << 16

# APPNOTE.TXT: local header 4.3.7, header in the directory 4.3.12, end of a large directory 4.3.14,
# its locator 4.3.15, end of the directory 4.3.16, the extra field for what is large 4.5.3.
LOCAL = struct.Struct("<4s5H3L2H")
ENTRY = struct.Struct("<4s6H3L5H2L")
LARGE_END = struct.Struct("<4sQ2H2L4Q")
LOCATOR = struct.Struct("<4sLQL")
END = struct.Struct("<4s4H2LH")
LOCAL_EXTRA = struct.Struct("<2H2Q")
ENTRY_EXTRA = struct.Struct("<2H3Q")
LARGE_ID = 1
VERSION = 45  # the first with large files (4.4.3)
UNIX = 3 << 8  # whose modes the attributes are (4.4.2)
UTF8 = 1 << 11  # the name is UTF-8 (4.4.4)
FIRST_DAY = 1 << 5 | 1  # 1980-01-01, the earliest that a zip can hold (4.4.6)
TOO_LARGE, TOO_MANY = 0xFFFFFFFF, 0xFFFF
MARGIN = 1 << 26  # bytes that a file of four gigabytes might grow by when it is packed, and more


@dataclass(frozen=True, slots=True)
class _Entry:
    """What the directory says of a member."""

    name: bytes
    method: int
    checksum: int
    packed: int
    size: int
    offset: int

    @property
    def flags(self) -> int:
        return 0 if self.name.isascii() else UTF8

    @property
    def is_large(self) -> bool:
        return max(self.packed, self.size, self.offset) + MARGIN >= TOO_LARGE

    def local(self) -> bytes:
        """Return the header in front of the member."""
        extra, sizes = b"", (self.packed, self.size)
        if self.is_large:
            extra = LOCAL_EXTRA.pack(LARGE_ID, LOCAL_EXTRA.size - 4, self.size, self.packed)
            sizes = (TOO_LARGE, TOO_LARGE)
        times = (0, FIRST_DAY)
        what = (VERSION, self.flags, self.method, *times, self.checksum, *sizes)
        lengths = (len(self.name), len(extra))
        return LOCAL.pack(b"PK\x03\x04", *what, *lengths) + self.name + extra

    def central(self) -> bytes:
        """Return the header in the directory."""
        extra, sizes, offset = b"", (self.packed, self.size), self.offset
        if self.is_large:
            large = (self.size, self.packed, self.offset)
            extra = ENTRY_EXTRA.pack(LARGE_ID, ENTRY_EXTRA.size - 4, *large)
            sizes, offset = (TOO_LARGE, TOO_LARGE), TOO_LARGE
        times = (0, FIRST_DAY)
        what = (VERSION | UNIX, VERSION, self.flags, self.method, *times, self.checksum, *sizes)
        rest = (len(self.name), len(extra), 0, 0, 0, MODE, offset)
        return ENTRY.pack(b"PK\x01\x02", *what, *rest) + self.name + extra


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A file in memory, packed."""

    method: int
    checksum: int
    size: int
    content: bytes


def small_file(data: bytes, *, compress: bool) -> SmallFile:
    """Return a file to be added."""
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    return SmallFile(method, crc32(data), len(data), packed(data) if compress else data)


def read_small(path: Path, *, compress: bool) -> SmallFile | None:
    """Return a file to be added, or none if it is too large to be in memory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        data = os.read(descriptor, size) if size <= BLOCK_BYTES else b""
    finally:
        os.close(descriptor)
    # One that changes meanwhile is left to who reads to its end.
    return small_file(data, compress=compress) if len(data) == size else None


class ZipWriter:
    """A zip on its way to the disk; the same members in the same order give the same bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self._entries: list[_Entry] = []

    def copy(self, name: str, member: ZipMember, content: Iterable[bytes]) -> None:
        """Add a member of another zip, packed as it is."""
        facts = (member.method, member.checksum, member.packed, member.size)
        entry = _Entry(name.encode(), *facts, self.file.tell())
        self.file.write(entry.local())
        self.file.writelines(content)
        self._entries.append(entry)

    def add(self, name: str, blocks: Iterable[bytes], size: int, *, compress: bool) -> None:
        """Add a file of *size* bytes that come in blocks."""
        if size <= BLOCK_BYTES:
            self.add_small(name, small_file(b"".join(blocks), compress=compress))
            return
        method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
        start = self.file.tell()
        draft = _Entry(name.encode(), method, 0, size, size, start)
        self.file.write(draft.local())
        begin = self.file.tell()
        content = _Counted(blocks)
        self.file.writelines(deflated(content) if compress else content)
        end = self.file.tell()
        entry = _Entry(draft.name, method, content.checksum, end - begin, content.size, start)
        self.file.seek(start)
        self.file.write(entry.local())  # now that all is known: of the same length as the draft
        self.file.seek(end)
        self._entries.append(entry)

    def add_small(self, name: str, small: SmallFile) -> None:
        """Add a file that is packed already."""
        sizes = (len(small.content), small.size)
        entry = _Entry(name.encode(), small.method, small.checksum, *sizes, self.file.tell())
        self.file.write(entry.local())
        self.file.write(small.content)
        self._entries.append(entry)

    def close(self) -> None:
        """Write the directory."""
        start = self.file.tell()
        self.file.writelines(entry.central() for entry in self._entries)
        count, size = len(self._entries), self.file.tell() - start
        if count >= TOO_MANY or start + size >= TOO_LARGE:
            where = self.file.tell()
            what = (LARGE_END.size - 12, VERSION | UNIX, VERSION, 0, 0, count, count, size, start)
            self.file.write(LARGE_END.pack(b"PK\x06\x06", *what))
            self.file.write(LOCATOR.pack(b"PK\x06\x07", 0, where, 1))
            count, size, start = min(count, TOO_MANY), min(size, TOO_LARGE), min(start, TOO_LARGE)
        self.file.write(END.pack(b"PK\x05\x06", 0, 0, count, count, size, start, 0))


class _Counted:
    """Blocks that are counted and summed up while they pass."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self.blocks = blocks
        self.size = self.checksum = 0

    def __iter__(self) -> Iterator[bytes]:
        for block in self.blocks:
            self.size += len(block)
            self.checksum = crc32(block, self.checksum)
            yield block


def file_blocks(path: Path) -> Iterator[bytes]:
    """Yield the content of a file."""
    with path.open("rb", buffering=0) as file:
        while block := file.read(BLOCK_BYTES):
            yield block
