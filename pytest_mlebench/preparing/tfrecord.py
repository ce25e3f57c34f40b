"""Reading names out of TFRecord files without TensorFlow.

A file is a row of records: length (8 bytes, little-endian), a checksum of it (4 bytes), the
payload, a checksum of that (4 bytes). A payload is a protobuf ``Example``; only what leads to the
texts in it is decoded here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing.files import require
from pytest_mlebench.preparing.tables import reading

CHECKSUM_BYTES = 4
VARINT, FIXED64, BYTES, FIXED32 = (
    0,
    1,
    2,
    5,
)  # the wire types of protobuf (protobuf.dev/programming-guides/encoding)
FIXED = {FIXED64: 8, FIXED32: 4}


def read_texts(path: Path, feature: str) -> list[str]:
    """Return the first text of *feature* in each record of a file."""
    require(path)
    with reading(path), path.open("rb") as file:
        return [_text(payload, feature.encode(), path) for payload in _records(file, path)]


def _records(file: IO[bytes], path: Path) -> Iterator[memoryview]:
    while head := file.read(8 + CHECKSUM_BYTES):
        if len(head) == 8 + CHECKSUM_BYTES:
            (length,) = struct.unpack("<Q", head[:8])
            left = path.stat().st_size - file.tell()
            if length + CHECKSUM_BYTES <= left:
                yield memoryview(file.read(length))
                file.seek(CHECKSUM_BYTES, 1)
                continue
        raise PreparationError(f"{path} ends within a record")


def _text(payload: memoryview, feature: bytes, path: Path) -> str:
    """Return the first text of a feature: Example 1 → Features 1 → entry {1: key, 2: Feature}."""
    for features in _fields(payload, 1):
        for entry in _fields(features, 1):
            if any(key == feature for key in _fields(entry, 1)):
                for value in _fields(entry, 2):
                    for texts in _fields(value, 1):  # a list of bytes
                        for text in _fields(texts, 1):
                            return str(text, "utf-8")
    raise PreparationError(f"{path} has a record without {feature.decode()!r}")


def _fields(message: memoryview, wanted: int) -> Iterator[memoryview]:
    """Yield the contents of the fields of one number that hold bytes or messages."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        number, wire = tag >> 3, tag & 7
        if wire == BYTES:
            length, position = _varint(message, position)
            if position + length > len(message):
                raise ValueError("a field is longer than its message")
            if number == wanted:
                yield message[position : position + length]
            position += length
        elif wire == VARINT:
            _, position = _varint(message, position)
        elif wire in FIXED:
            position += FIXED[wire]
        else:
            raise ValueError(f"a field of unknown wire type {wire}")


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    """Return the number at *position*, seven bits a byte, and where it ends."""
    value, shift = 0, 0
    while position < len(message):
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("a number is cut off")
