"""7z archives of our own writing are read by py7zr, and can be read in part."""

from __future__ import annotations

import os
from pathlib import Path

import py7zr
import pytest

from pytest_mlebench.archives.archive import extract, write_7z
from pytest_mlebench.archives.seven_zip_reader import read_start_of_7z
from pytest_mlebench.archives.seven_zip_writer import _bits, _number
from pytest_mlebench.errors import PreparationError


def contents(archive: Path) -> dict[str, bytes]:
    with py7zr.SevenZipFile(archive) as opened:
        assert opened.testzip() is None
        factory = py7zr.io.BytesIOFactory(1 << 30)
        opened.reset()
        opened.extractall(factory=factory)
        return {name: file.read() for name, file in factory.products.items()}


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize(
    "sizes", [[5], [0], [3, 0, 4], [0, 0], [3_000_000, 70_000, 1], [1] * 300], ids=str
)
def test_any_files_can_be_read_again(sizes: list[int], compress: bool, tmp_path: Path) -> None:
    files = {}
    for number, size in enumerate(sizes):
        path = tmp_path / f"ü{number}"
        path.write_bytes(os.urandom(size // 2) + bytes(size - size // 2))
        files[f"deep/{path.name}"] = path
    write_7z(tmp_path / "a.7z", files, prefix="p/", compress=compress)
    expected = {f"p/{name}": path.read_bytes() for name, path in files.items()}
    assert contents(tmp_path / "a.7z") == expected
    extract(tmp_path / "a.7z", tmp_path / "out")
    found = {p.relative_to(tmp_path / "out").as_posix(): p.read_bytes() for p in _files(tmp_path)}
    assert found == expected


def _files(folder: Path) -> list[Path]:
    return [path for path in (folder / "out").rglob("*") if path.is_file()]


def test_blocks_become_a_member(tmp_path: Path) -> None:
    write_7z(tmp_path / "a.7z", {"t.json": iter([b"[", b"1" * 10**6, b"]"])})
    assert contents(tmp_path / "a.7z") == {"t.json": b"[" + b"1" * 10**6 + b"]"}


def test_text_becomes_smaller(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"0.25, 0.5, " * 100_000)
    write_7z(tmp_path / "a.7z", {"t": tmp_path / "t"})
    assert (tmp_path / "a.7z").stat().st_size < 100_000


def test_the_start_of_a_member_is_enough(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(os.urandom(3_000_000))
    write_7z(tmp_path / "a.7z", {"deep/t": tmp_path / "t"})
    whole = (tmp_path / "t").read_bytes()
    assert read_start_of_7z(tmp_path / "a.7z", "deep/t", 1000) == whole[:1000]
    assert read_start_of_7z(tmp_path / "a.7z", "deep/t", 10**9) == whole
    with pytest.raises(PreparationError, match=r"a\.7z: has no member 'x'"):
        read_start_of_7z(tmp_path / "a.7z", "x", 1000)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "00"),
        (0x7F, "7f"),
        (0x80, "8080"),
        (0x3FFF, "bfff"),
        (0x4000, "c00040"),
        (2**32, "f100000000"),
        (2**56 - 1, "feffffffffffffff"),
        (2**56, "ff0000000000000001"),
        (2**64 - 1, "ffffffffffffffffff"),
    ],
)
def test_numbers_are_written_as_the_format_says(value: int, text: str) -> None:
    """7zFormat.txt: the ones that begin the first byte say how many more bytes follow."""
    assert _number(value).hex() == text


def test_flags_begin_at_the_highest_bit() -> None:
    assert _bits([True, False, False, False, False, False, False, False, True]) == b"\x80\x80"
    assert _bits([True] * 8) == b"\xff"
