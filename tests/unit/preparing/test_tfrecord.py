"""Reading names out of TFRecord files, and what is said of broken ones."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import read_texts


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def example(**features: bytes) -> bytes:
    entries = (field(1, name.encode()) + field(2, value) for name, value in features.items())
    return field(1, b"".join(field(1, entry) for entry in entries))


def texts(*values: str) -> bytes:
    return field(1, b"".join(field(1, value.encode()) for value in values))


def integer(number: int) -> bytes:
    return field(3, varint(1 << 3) + varint(number))


def record(payload: bytes) -> bytes:
    return struct.pack("<Q", len(payload)) + b"crc " + payload + b" crc"


def written(folder: Path, data: bytes) -> Path:
    path = folder / "part00-2.tfrec"
    path.write_bytes(data)
    return path


def test_the_first_text_of_a_feature_is_read_from_every_record(tmp_path: Path) -> None:
    first = example(image=texts("x" * 300), target=integer(4), image_name=texts("a.jpg", "b.jpg"))
    second = example(image_name=texts("é.jpg"), image=texts("image_name"))
    path = written(tmp_path, record(first) + record(second))
    assert read_texts(path, "image_name") == ["a.jpg", "é.jpg"]


def test_fields_that_hold_no_text_are_passed_over(tmp_path: Path) -> None:
    numbers = varint(2 << 3) + varint(700) + varint(3 << 3 | 1) + b"8 bytes."
    numbers += varint(4 << 3 | 5) + b"four"
    path = written(tmp_path, record(numbers + example(name=texts("a"))))
    assert read_texts(path, "name") == ["a"]


@pytest.mark.parametrize("lost", [1, 4, 5, 30])
def test_a_truncated_file_is_named(tmp_path: Path, lost: int) -> None:
    path = written(tmp_path, record(example(name=texts("a" * 40)))[:-lost])
    with pytest.raises(PreparationError, match=r"part00-2\.tfrec ends within a record$"):
        read_texts(path, "name")


def test_a_file_that_ends_within_the_head_of_a_record_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, record(example(name=texts("a"))) + b"12345")
    with pytest.raises(PreparationError, match="ends within a record"):
        read_texts(path, "name")


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (example(other=texts("a")), "has a record without 'name'"),
        (example(name=integer(7)), "has a record without 'name'"),
        (example(name=texts("a"))[:-1], "cannot be read: a field is longer than its message"),
        (varint(1 << 3 | 7), "cannot be read: a field of unknown wire type 7"),
        (b"\x80", "cannot be read: a number is cut off"),
        (example(name=field(1, field(1, b"\xff"))), "is not utf-8 text: invalid start byte"),
    ],
)
def test_what_is_no_record_of_names_is_refused(
    tmp_path: Path, payload: bytes, problem: str
) -> None:
    path = written(tmp_path, record(payload))
    with pytest.raises(PreparationError) as caught:
        read_texts(path, "name")
    assert str(caught.value) == f"{path} {problem}"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PreparationError, match=r"none\.tfrec: no such file in the raw data"):
        read_texts(tmp_path / "none.tfrec", "name")
