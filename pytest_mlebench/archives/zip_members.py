"""The members of a zip as they are in it, packed: to be passed on without being unpacked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pytest_mlebench.archives.unzip import checked_members, damaged, data_start
from pytest_mlebench.errors import PreparationError

CHUNK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class ZipMember:
    """A file in a zip: where its packed bytes are, and what they become."""

    archive: Path
    name: str
    offset: int
    method: int
    checksum: int
    packed: int
    size: int


class ZipMembers(Mapping[str, ZipMember]):
    """The files of a zip by their names; one that is not there is a PreparationError."""

    def __init__(self, archive: Path) -> None:
        self.archive = archive
        self._members = {
            info.filename: ZipMember(
                archive,
                info.filename,
                info.header_offset,
                info.compress_type,
                info.CRC,
                info.compress_size,
                info.file_size,
            )
            for info in checked_members(archive)
        }

    def __getitem__(self, name: str) -> ZipMember:
        try:
            return self._members[name]
        except KeyError:
            raise PreparationError(f"{self.archive}: has no member {name!r}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def below(self, folder: str) -> list[ZipMember]:
        """Return the files directly in a folder, sorted by their names."""
        start = f"{folder}/"
        names = (name for name in self if name.startswith(start) and "/" not in name[len(start) :])
        return [self._members[name] for name in sorted(names)]


class PackedReader:
    """Archives that are open while their members are read."""

    def __init__(self) -> None:
        self._files: dict[Path, IO[bytes]] = {}

    def read(self, member: ZipMember) -> Iterator[bytes]:
        """Yield the packed bytes of a member."""
        descriptor = self._open(member.archive).fileno()
        # The header there may be longer than the one in the directory: read a little more.
        head = os.pread(descriptor, min(member.packed, CHUNK_BYTES) + 1024, member.offset)
        start = data_start(member.archive, member.name, head)
        first = head[start : start + member.packed]
        place, left = member.offset + start + len(first), member.packed - len(first)
        yield first
        while left:
            block = os.pread(descriptor, min(left, CHUNK_BYTES), place)
            if not block:
                raise damaged(member.archive, member.name, "the archive ends too early")
            yield block
            place, left = place + len(block), left - len(block)

    def close(self) -> None:
        """Close the archives."""
        for file in self._files.values():
            file.close()

    def _open(self, archive: Path) -> IO[bytes]:
        if archive not in self._files:
            self._files[archive] = archive.open("rb", buffering=0)
        return self._files[archive]


@contextmanager
def packed_reader() -> Iterator[PackedReader]:
    """Yield a reader of members that closes what it opens."""
    reader = PackedReader()
    try:
        yield reader
    finally:
        reader.close()
