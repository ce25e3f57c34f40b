"""Unpack a zip in parallel, each member in one read and one write."""

from __future__ import annotations

import errno
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing.entries import Entry, check_entries

CHUNK = 4 << 20
HEADER = struct.Struct("<4s22xHH")  # signature, …, length of name, length of extra field
SIGNATURE = b"PK\x03\x04"
ENCRYPTED = 0x1
BATCH = 256  # members handed to a thread at a time


def unzip(archive: Path, target: Path, *, jobs: int | None = None) -> None:
    """Unpack *archive* below *target*, judged as a whole before anything is written."""
    try:
        with zipfile.ZipFile(archive) as opened:
            infos = opened.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
        raise PreparationError(f"{archive}: not a readable zip: {error}") from None
    members = _members(archive, infos)
    check_entries(archive, map(_entry, infos), target)
    _make_folders(archive, infos, target)
    with archive.open("rb") as file, ThreadPoolExecutor(jobs or _default_jobs()) as pool:
        job = _Job(archive, file.fileno(), target)
        batches = [members[start : start + BATCH] for start in range(0, len(members), BATCH)]
        for _ in pool.map(job.unpack, batches):
            pass


def _default_jobs() -> int:
    return min(8, 2 * (os.cpu_count() or 1))


def _entry(info: zipfile.ZipInfo) -> Entry:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if info.is_dir():
        kind = stat.S_IFDIR
    return Entry(info.filename, info.file_size, kind or stat.S_IFREG)


def _members(archive: Path, infos: Iterable[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    """Return the files in the order of the archive; of two with one name the last one counts."""
    files = {info.filename: info for info in infos if not info.is_dir()}
    members = sorted(files.values(), key=lambda info: info.header_offset)
    end = 0
    for info in members:
        if info.flag_bits & ENCRYPTED:
            raise PreparationError(f"{archive}: refused, member {info.filename!r} is encrypted")
        if info.header_offset < end:  # the trick of bombs that share one compressed stream
            raise PreparationError(f"{archive}: refused, member {info.filename!r} overlaps another")
        end = info.header_offset + HEADER.size + info.compress_size
    return members


def _make_folders(archive: Path, infos: Sequence[zipfile.ZipInfo], target: Path) -> None:
    names = {os.path.dirname(info.filename) for info in infos}  # noqa: PTH120 - 50 000 times
    target.mkdir(parents=True, exist_ok=True)
    for name in sorted(names):
        try:
            (target / name).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise PreparationError(f"{archive}: {name!r} is both a file and a folder") from None


class _Job:
    """Unpack members of one open archive; safe to be used by many threads."""

    def __init__(self, archive: Path, descriptor: int, target: Path) -> None:
        self.archive = archive
        self.descriptor = descriptor
        self.base = f"{target}/"

    def unpack(self, members: Sequence[zipfile.ZipInfo]) -> None:
        for info in members:
            try:
                self._unpack(info)
            except zlib.error as error:
                raise self._damaged(info, str(error)) from None
            except (IsADirectoryError, NotADirectoryError):
                raise self._damaged(info, "is both a file and a folder") from None
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                raise PreparationError(
                    f"{self.archive}: member {info.filename!r} cannot be written: a link is there"
                ) from None

    def _unpack(self, info: zipfile.ZipInfo) -> None:
        out = os.open(
            self.base + info.filename, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644
        )
        try:
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                self._by_library(info, out)
            elif info.compress_size <= CHUNK and info.file_size <= 4 * CHUNK:
                self._at_once(info, out)
            else:
                self._in_chunks(info, out)
        finally:
            os.close(out)

    def _at_once(self, info: zipfile.ZipInfo, out: int) -> None:
        # The local header's extra field may differ from the central one: read a little more.
        guess = HEADER.size + len(info.filename.encode()) + 64 + info.compress_size
        block = os.pread(self.descriptor, guess, info.header_offset)
        start = self._data_start(info, block)
        data = block[start : start + info.compress_size]
        if len(data) < info.compress_size:
            data = os.pread(self.descriptor, info.compress_size, info.header_offset + start)
        if info.compress_type == zipfile.ZIP_DEFLATED:
            inflate = zlib.decompressobj(-15)
            data = inflate.decompress(data, info.file_size + 1)
        if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
            raise self._damaged(info, "wrong size or checksum")
        _write(out, data)

    def _in_chunks(self, info: zipfile.ZipInfo, out: int) -> None:
        head = os.pread(self.descriptor, HEADER.size, info.header_offset)
        offset = info.header_offset + self._data_start(info, head)
        inflate = zlib.decompressobj(-15) if info.compress_type == zipfile.ZIP_DEFLATED else None
        left, size, crc = info.compress_size, 0, 0
        while left:
            block = os.pread(self.descriptor, min(left, CHUNK), offset)
            if not block:
                raise self._damaged(info, "the archive ends too early")
            offset, left = offset + len(block), left - len(block)
            while block:
                data = inflate.decompress(block, CHUNK) if inflate else block
                block = inflate.unconsumed_tail if inflate else b""
                size, crc = size + len(data), zlib.crc32(data, crc)
                if size > info.file_size:
                    raise self._damaged(info, "is larger than it says")
                _write(out, data)
        if inflate:
            data = inflate.flush()
            size, crc = size + len(data), zlib.crc32(data, crc)
            _write(out, data)
        if size != info.file_size or crc != info.CRC:
            raise self._damaged(info, "wrong size or checksum")

    def _by_library(self, info: zipfile.ZipInfo, out: int) -> None:
        size = 0
        try:
            with zipfile.ZipFile(self.archive) as opened, opened.open(info) as member:
                while data := member.read(CHUNK):
                    size += len(data)
                    if size > info.file_size:
                        raise self._damaged(info, "is larger than it says")
                    _write(out, data)
        except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, ValueError) as error:
            raise self._damaged(info, str(error)) from None

    def _data_start(self, info: zipfile.ZipInfo, block: bytes) -> int:
        if len(block) < HEADER.size or block[:4] != SIGNATURE:
            raise self._damaged(info, "no member begins where the index says")
        _, name, extra = HEADER.unpack_from(block)
        return HEADER.size + int(name) + int(extra)

    def _damaged(self, info: zipfile.ZipInfo, problem: str) -> PreparationError:
        return PreparationError(
            f"{self.archive}: damaged, member {info.filename!r}: {problem}; fetch it again"
        )


def _write(out: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(out, view) :]
