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
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from zipfile import ZipInfo

from pytest_mlebench.children import problem, serve, started
from pytest_mlebench.errors import PreparationError
from pytest_mlebench.zips.entries import Entry, check_entries

CHUNK = 4 << 20
HEADER = struct.Struct("<4s22xHH")  # signature, …, length of name, length of extra field
SIGNATURE = b"PK\x03\x04"
ENCRYPTED = 0x1
BATCH = 256  # neighbours in the archive that one process unpacks
WORTH_IT = 8000  # members from which on more processes pay

Done = dict[int, tuple[str, int, int]]  # members by offset: name, size, checksum
Facts = tuple[str, int, int, int, int, int]  # name, offset, method, checksum, sizes


def unzip(
    archive: Path, target: Path, *, jobs: int | None = None, done: Done | None = None
) -> None:
    """Unpack *archive* below *target*, judged as a whole before anything is written.

    *done* are members that lie there already.
    """
    infos = _index(archive)
    members = _members(archive, infos)
    there = sum(size for _, size, _ in (done or {}).values() if size > 0)
    check_entries(archive, map(_entry, infos), target, there=there)
    _make_folders(archive, infos, target)
    members = _still_to_do(members, done or {}, target)
    crew = jobs or os.cpu_count() or 1
    if crew == 1 or len(members) < WORTH_IT:
        with archive.open("rb") as file:
            Unpacking(archive, file.fileno(), target).unpack(members)
    else:
        _share(archive, target, members, crew)


def _index(archive: Path) -> list[ZipInfo]:
    try:
        with zipfile.ZipFile(archive) as opened:
            return opened.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
        raise PreparationError(f"{archive}: not a readable zip: {error}") from None


def _share(archive: Path, target: Path, members: Sequence[ZipInfo], crew: int) -> None:
    """Let several processes unpack; threads would wait for one another at every small file."""
    lots = [members[start : start + BATCH] for start in range(0, len(members), BATCH)]
    shares = [list(map(_facts, chain.from_iterable(lots[n::crew]))) for n in range(crew)]

    def work(share: list[Facts]) -> None:
        with started(__name__, str(archive), str(target)) as child:
            out, err = child.communicate(json.dumps(share).encode())
        done = subprocess.CompletedProcess(child.args, child.returncode, out, err)
        if done.returncode != 0:
            last = err.decode(errors="replace").strip().splitlines()[-1:]
            raise PreparationError(problem(done) or f"{archive}: cannot unpack: {''.join(last)}")

    with ThreadPoolExecutor(crew) as pool:
        for _ in pool.map(work, shares):
            pass


def _unpack_share(archive: str, target: str) -> None:
    """Unpack the members that the standard input lists."""
    members = [_info(*facts) for facts in json.load(sys.stdin)]
    with Path(archive).open("rb") as file:
        Unpacking(Path(archive), file.fileno(), Path(target)).unpack(members)


def _facts(info: ZipInfo) -> Facts:
    sizes = (info.compress_size, info.file_size)
    return (info.filename, info.header_offset, info.compress_type, info.CRC, *sizes)


def _info(name: str, offset: int, method: int, checksum: int, packed: int, size: int) -> ZipInfo:
    info = ZipInfo()
    info.filename, info.header_offset, info.compress_type = name, offset, method
    info.CRC, info.compress_size, info.file_size = checksum, packed, size
    return info


def _entry(info: ZipInfo) -> Entry:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if info.is_dir():
        kind = stat.S_IFDIR
    return Entry(info.filename, info.file_size, kind or stat.S_IFREG)


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
    """Members of one open archive on their way to a folder; safe to be used by many threads."""

    def __init__(self, archive: Path, descriptor: int, target: Path) -> None:
        self.archive = archive
        self.descriptor = descriptor
        self.base = f"{target}/"

    def unpack(self, members: Sequence[ZipInfo]) -> None:
        """Unpack some members."""
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

    def _unpack(self, info: ZipInfo) -> None:
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

    def _at_once(self, info: ZipInfo, out: int) -> None:
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

    def _in_chunks(self, info: ZipInfo, out: int) -> None:
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

    def _by_library(self, info: ZipInfo, out: int) -> None:
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

    def _data_start(self, info: ZipInfo, block: bytes) -> int:
        if len(block) < HEADER.size or block[:4] != SIGNATURE:
            raise self._damaged(info, "no member begins where the index says")
        _, name, extra = HEADER.unpack_from(block)
        return HEADER.size + int(name) + int(extra)

    def _damaged(self, info: ZipInfo, problem: str) -> PreparationError:
        return PreparationError(
            f"{self.archive}: damaged, member {info.filename!r}: {problem}; fetch it again"
        )


def _write(out: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(out, view) :]


if __name__ == "__main__":
    sys.exit(serve(_unpack_share))
