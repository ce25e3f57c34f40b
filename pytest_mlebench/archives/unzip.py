"""Unpack a zip: each member in one read and one write, many members in several processes."""

from __future__ import annotations

import errno
import json
import os
import stat
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import IO
from zipfile import ZipInfo

from pytest_mlebench.archives.deflate import RAW, DeflateError, crc32, fast_zlib, inflated
from pytest_mlebench.archives.entries import ArchiveEntry, check_entries, check_name
from pytest_mlebench.archives.unpacked_bytes import Report, reported, times
from pytest_mlebench.errors import PreparationError
from pytest_mlebench.host.child_process import problem, serve, started
from pytest_mlebench.host.hardware import host_cpus

CHUNK_BYTES = 4 << 20
MAX_WHOLE_BYTES = 256 << 10  # packed: what they can become at worst still fits into memory
KNOWN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
BATCH_MEMBERS = 256  # neighbours in the archive that one process unpacks
MIN_SHARED_MEMBERS = 8000  # from which on more processes pay

# A local file header, APPNOTE.TXT 4.3.7: signature, …, length of name, length of extra field; the
# flag of an encrypted member, 4.4.4, bit 0.
HEADER = struct.Struct("<4s22xHH")
SIGNATURE = b"PK\x03\x04"
ENCRYPTED = 1 << 0

UNREADABLE: tuple[type[Exception], ...] = (
    *DeflateError,
    zipfile.BadZipFile,
    NotImplementedError,
    EOFError,
    ValueError,
)

Done = dict[int, tuple[str, int, int]]  # members by offset: name, size, checksum
Facts = tuple[str, int, int, int, int, int]  # name, offset, method, checksum, sizes


def unzip(
    archive: Path,
    target: Path,
    *,
    jobs: int | None = None,
    done: Done | None = None,
    check: bool = True,
    report: Report | None = None,
) -> None:
    """Unpack *archive* below *target*, judged as a whole before anything is written.

    *done* are members that lie there already. Without *check* the sums of the members are not
    looked at: the sum of the archive has been, and vouches for them. *report* receives about how
    many bytes are unpacked, of how many.
    """
    infos, members = _judged(archive)
    there = sum(size for _, size, _ in (done or {}).values() if size > 0)
    check_entries(archive, map(_entry, infos), target, there=there)
    _make_folders(archive, infos, target)
    members = _still_to_do(members, done or {}, target)
    crew = jobs or host_cpus()
    if crew == 1 or len(members) < MIN_SHARED_MEMBERS:
        _unpack(archive, target, members, check, report)
    else:
        _share(archive, target, members, crew, check, report)


def checked_members(archive: Path) -> list[ZipInfo]:
    """Return the files of a zip in their order there, if nothing about it is suspicious."""
    infos, members = _judged(archive)
    for info in infos:
        check_name(archive, info.filename)
    return members


def read_blocks(archive: Path, name: str) -> Iterator[bytes | memoryview]:
    """Yield the content of a member that may be larger than the memory."""
    found = [info for info in checked_members(archive) if info.filename == name]
    if not found:
        raise PreparationError(f"{archive}: has no member {name!r}")
    with archive.open("rb") as file:
        yield from Unpacking(archive, file.fileno(), archive.parent, check=True).blocks(found[0])


def data_start(archive: Path, name: str, head: bytes) -> int:
    """Return how far the data of a member are from the beginning of its header."""
    if len(head) < HEADER.size or head[:4] != SIGNATURE:
        raise damaged(archive, name, "no member begins where the index says")
    _, name_length, extra_length = HEADER.unpack_from(head)
    return HEADER.size + int(name_length) + int(extra_length)


def damaged(archive: Path, name: str, problem: str) -> PreparationError:
    """Return the error that names the archive and the member."""
    return PreparationError(f"{archive}: damaged, member {name!r}: {problem}; fetch it again")


def _judged(archive: Path) -> tuple[list[ZipInfo], list[ZipInfo]]:
    infos = _index(archive)
    return infos, _members(archive, infos)


def _unpack(
    archive: Path,
    target: Path,
    members: Sequence[ZipInfo],
    check: bool,
    report: Report | None = None,
) -> None:
    with archive.open("rb") as file:
        unpacking = Unpacking(archive, file.fileno(), target, check=check)
        unpacking.unpack(members if report is None else reported(members, report))


def _index(archive: Path) -> list[ZipInfo]:
    try:
        with zipfile.ZipFile(archive) as opened:
            return opened.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
        raise PreparationError(f"{archive}: not a readable zip: {error}") from None


def _share(
    archive: Path,
    target: Path,
    members: Sequence[ZipInfo],
    crew: int,
    check: bool,
    report: Report | None,
) -> None:
    """Let several processes unpack; threads would wait for one another at every small file."""
    lots = [
        members[start : start + BATCH_MEMBERS] for start in range(0, len(members), BATCH_MEMBERS)
    ]
    ours, *shares = [list(chain.from_iterable(lots[n::crew])) for n in range(crew)]

    def work(share: Sequence[ZipInfo]) -> None:
        task = json.dumps([check, *map(_facts, share)]).encode()
        with started(__name__, str(archive), str(target)) as child:
            out, err = child.communicate(task)
        done = subprocess.CompletedProcess(child.args, child.returncode, out, err)
        if done.returncode != 0:
            last = err.decode(errors="replace").strip().splitlines()[-1:]
            raise PreparationError(problem(done) or f"{archive}: cannot unpack: {''.join(last)}")

    with ThreadPoolExecutor(crew) as pool:
        futures = [pool.submit(work, share) for share in shares]
        # the shares are alike: what is reported of ours times their number is about all
        _unpack(archive, target, ours, check, report and times(crew, report))
        for future in futures:
            future.result()


def _unpack_share(archive: str, target: str) -> None:
    """Unpack the members that the standard input lists."""
    check, *facts = json.load(sys.stdin)
    _unpack(Path(archive), Path(target), [_info(*each) for each in facts], check)


def _facts(info: ZipInfo) -> Facts:
    sizes = (info.compress_size, info.file_size)
    return (info.filename, info.header_offset, info.compress_type, info.CRC, *sizes)


def _info(name: str, offset: int, method: int, checksum: int, packed: int, size: int) -> ZipInfo:
    info = ZipInfo()
    info.filename, info.header_offset, info.compress_type = name, offset, method
    info.CRC, info.compress_size, info.file_size = checksum, packed, size
    return info


def _entry(info: ZipInfo) -> ArchiveEntry:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if info.is_dir():
        kind = stat.S_IFDIR
    return ArchiveEntry(info.filename, info.file_size, kind or stat.S_IFREG)


def _members(archive: Path, infos: Iterable[ZipInfo]) -> list[ZipInfo]:
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


def _still_to_do(members: list[ZipInfo], done: Done, target: Path) -> list[ZipInfo]:
    """Return the members that are not there yet; remove what is there and should not be."""
    left = dict(done)
    todo = [
        info
        for info in members
        if left.pop(info.header_offset, None) != (info.filename, info.file_size, info.CRC)
    ]
    for name, _, _ in left.values():
        (target / name).unlink(missing_ok=True)
    return todo


def _make_folders(archive: Path, infos: Sequence[ZipInfo], target: Path) -> None:
    names = {os.path.dirname(info.filename) for info in infos}  # noqa: PTH120 - 50 000 times
    target.mkdir(parents=True, exist_ok=True)
    for name in sorted(names):
        try:
            (target / name).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise PreparationError(f"{archive}: {name!r} is both a file and a folder") from None


class Unpacking:
    """Members of one open archive on their way to a folder."""

    def __init__(self, archive: Path, descriptor: int, target: Path, *, check: bool) -> None:
        self.archive = archive
        self.descriptor = descriptor
        self.base = f"{target}/"
        self.check = check

    def unpack(self, members: Iterable[ZipInfo]) -> None:
        """Unpack some members."""
        for info in members:
            self.write(info, self.blocks(info))

    def blocks(self, info: ZipInfo) -> Iterator[bytes | memoryview]:
        """Yield the content of a member."""
        small = info.compress_size <= MAX_WHOLE_BYTES and info.compress_type in KNOWN_METHODS
        return iter((self._at_once(info),)) if small else self._in_parts(info)

    def write(self, info: ZipInfo, blocks: Iterable[bytes | memoryview]) -> None:
        """Write the content of a member."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        try:
            out = os.open(self.base + info.filename, flags, 0o644)
        except (IsADirectoryError, NotADirectoryError):
            raise self.damaged(info, "is both a file and a folder") from None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise PreparationError(
                f"{self.archive}: member {info.filename!r} cannot be written: a link is there"
            ) from None
        try:
            for block in blocks:
                _write(out, block)
        finally:
            os.close(out)

    def damaged(self, info: ZipInfo, problem: str) -> PreparationError:
        """Return the error that names the archive and the member."""
        return damaged(self.archive, info.filename, problem)

    def content(self, info: ZipInfo, packed: memoryview) -> bytes | memoryview:
        """Return the content of a small member from its bytes in the archive."""
        data: bytes | memoryview = packed
        if info.compress_type == zipfile.ZIP_DEFLATED:
            try:  # at once: many times faster than piece by piece, and small enough to be bounded
                data = inflated(packed, info.file_size)
            except DeflateError as error:
                raise self.damaged(info, str(error)) from None
        if len(data) != info.file_size or (self.check and crc32(data) != info.CRC):
            raise self.damaged(info, "wrong size or checksum")
        return data

    def _at_once(self, info: ZipInfo) -> bytes | memoryview:
        # The local header's extra field may differ from the central one: read a little more.
        guess = HEADER.size + 2 * len(info.filename) + 64 + info.compress_size
        block = os.pread(self.descriptor, guess, info.header_offset)
        start = self._data_start(info, block)
        packed = memoryview(block)[start : start + info.compress_size]
        if len(packed) < info.compress_size:
            offset = info.header_offset + start
            packed = memoryview(os.pread(self.descriptor, info.compress_size, offset))
        return self.content(info, packed)

    def _in_parts(self, info: ZipInfo) -> Iterator[bytes]:
        """Yield the content of a large or unusual member, never more than it says."""
        size = crc = 0
        parts = self._parts if info.compress_type in KNOWN_METHODS else self._parts_by_library
        try:
            for data in parts(info):
                size, crc = size + len(data), crc32(data, crc) if self.check else 0
                if size > info.file_size:
                    raise self.damaged(info, "is larger than it says")
                yield data
        except UNREADABLE as error:
            raise self.damaged(info, str(error)) from None
        if size != info.file_size or (self.check and crc != info.CRC):
            raise self.damaged(info, "wrong size or checksum")

    def _parts(self, info: ZipInfo) -> Iterator[bytes]:
        head = os.pread(self.descriptor, HEADER.size, info.header_offset)
        offset = info.header_offset + self._data_start(info, head)
        inflate = (
            fast_zlib.decompressobj(RAW) if info.compress_type == zipfile.ZIP_DEFLATED else None
        )
        left = info.compress_size
        while left:
            block = os.pread(self.descriptor, min(left, CHUNK_BYTES), offset)
            if not block:
                raise self.damaged(info, "the archive ends too early")
            offset, left = offset + len(block), left - len(block)
            while block:
                yield inflate.decompress(block, CHUNK_BYTES) if inflate else block
                block = inflate.unconsumed_tail if inflate else b""
        if inflate:
            yield inflate.flush()

    def _parts_by_library(self, info: ZipInfo) -> Iterator[bytes]:
        with zipfile.ZipFile(self.archive) as opened, opened.open(info.filename) as member:
            while data := self._read(info, member):
                yield data

    def _read(self, info: ZipInfo, member: IO[bytes]) -> bytes:
        try:
            return member.read(CHUNK_BYTES)
        except OSError as error:  # what bzip2 says of wrong bytes
            raise self.damaged(info, str(error)) from None

    def _data_start(self, info: ZipInfo, block: bytes) -> int:
        return data_start(self.archive, info.filename, block)


def _write(out: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(out, view) :]


if __name__ == "__main__":
    sys.exit(serve(_unpack_share))
