"""Writing 7z archives, fast: one stream of all files, stored or packed by deflate on all cores.

The usual method, LZMA, packs a megabyte or a few in a second. The format is that of 7zFormat.txt in
the LZMA SDK (https://www.7-zip.org/sdk.html), whose names are in the comments.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pytest_mlebench.archives.deflate import crc32, deflated, in_blocks
from pytest_mlebench.archives.zip_writer import file_blocks

SIGNATURE = b"7z\xbc\xaf\x27\x1c"
VERSION = b"\0\4"
HEAD = struct.Struct("<6s2sL")  # signature, version, checksum of what follows
NEXT = struct.Struct("<QQL")  # where the header is, its size, its checksum
COPY, DEFLATE = b"\0", b"\4\1\x08"  # kinds of coders (Methods.txt)
ATTRIBUTES = 0x20 | 0x8000 | 0o100644 << 16  # FILE_ATTRIBUTE_ARCHIVE, and a mode of Unix above

END, HEADER, MAIN_STREAMS, FILES = b"\0", b"\1", b"\4", b"\5"  # kEnd, kHeader, …
PACK, UNPACK, SUBSTREAMS = b"\6", b"\7", b"\x08"
SIZE, CRC, FOLDER, UNPACK_SIZE, STREAM_COUNT = b"\x09", b"\x0a", b"\x0b", b"\x0c", b"\x0d"
EMPTY_STREAM, EMPTY_FILE, NAMES, WINDOWS = b"\x0e", b"\x0f", b"\x11", b"\x15"


@dataclass(frozen=True)
class _File:
    name: str
    size: int
    checksum: int


def write_files(
    file: IO[bytes], files: Mapping[str, Path | Iterable[bytes]], *, compress: bool
) -> None:
    """Write an archive of files, or of blocks of bytes, by their names in it."""
    file.write(bytes(HEAD.size + NEXT.size))
    start = file.tell()
    members: list[_File] = []
    content = in_blocks(_content(files, members))
    file.writelines(deflated(content) if compress else content)
    packed = file.tell() - start
    header = _header(members, packed, DEFLATE if compress else COPY)
    file.write(header)
    follows = NEXT.pack(packed, len(header), crc32(header))
    file.seek(0)
    file.write(HEAD.pack(SIGNATURE, VERSION, crc32(follows)) + follows)


def _content(files: Mapping[str, Path | Iterable[bytes]], noted: list[_File]) -> Iterator[bytes]:
    """Yield the files one after the other, and note down what they are."""
    for name, source in files.items():
        size = checksum = 0
        for block in file_blocks(source) if isinstance(source, Path) else source:
            size, checksum = size + len(block), crc32(block, checksum)
            yield block
        noted.append(_File(name, size, checksum))


def _header(files: list[_File], packed: int, coder: bytes) -> bytes:
    streams = [file for file in files if file.size]
    parts = [HEADER]
    if streams:
        parts += [MAIN_STREAMS, *_streams(streams, packed, coder), END]
    parts += [FILES, _number(len(files)), *_empty(files), *_names(files), *_attributes(files)]
    return b"".join([*parts, END, END])


def _streams(files: list[_File], packed: int, coder: bytes) -> Iterable[bytes]:
    """Yield that there is one stream with one coder, and how long each file in it is."""
    yield from (PACK, _number(0), _number(1), SIZE, _number(packed), END)
    yield from (UNPACK, FOLDER, _number(1), b"\0", _number(1), bytes([len(coder)]), coder)
    yield from (UNPACK_SIZE, _number(sum(file.size for file in files)), END)
    yield from (SUBSTREAMS, STREAM_COUNT, _number(len(files)))
    if len(files) > 1:  # the size of the last one is what is left
        yield SIZE
        yield from (_number(file.size) for file in files[:-1])
    yield from (CRC, b"\1", *(struct.pack("<L", file.checksum) for file in files), END)


def _empty(files: list[_File]) -> Iterable[bytes]:
    """Yield which files have no content, and that they are files and not folders."""
    flags = [not file.size for file in files]
    if any(flags):
        yield from _property(EMPTY_STREAM, _bits(flags))
        yield from _property(EMPTY_FILE, _bits([True] * sum(flags)))


def _names(files: list[_File]) -> Iterable[bytes]:
    names = "".join(f"{file.name}\0" for file in files)
    return _property(NAMES, b"\0" + names.encode("utf-16-le"))


def _attributes(files: list[_File]) -> Iterable[bytes]:
    return _property(WINDOWS, b"\1\0" + struct.pack("<L", ATTRIBUTES) * len(files))


def _property(kind: bytes, content: bytes) -> tuple[bytes, ...]:
    return kind, _number(len(content)), content


def _bits(flags: list[bool]) -> bytes:
    """Return flags as bits, the first one the highest."""
    text = "".join("1" if flag else "0" for flag in flags).ljust(-len(flags) // 8 * -8, "0")
    return int(text, 2).to_bytes(len(text) // 8, "big")


def _number(value: int) -> bytes:
    """Return a number as 7z writes it: the ones that begin it say how many bytes follow."""
    for length in range(8):
        if value < 1 << 7 * (length + 1):
            mask = 0xFF << (8 - length) & 0xFF
            low = value & (1 << 8 * length) - 1
            return bytes([mask | value >> 8 * length]) + low.to_bytes(length, "little")
    return b"\xff" + value.to_bytes(8, "little")
