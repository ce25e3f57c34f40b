"""Zips made of files and of members of other zips, which stay packed as they are."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

from pytest_mlebench.archives import deflate, zip_writer
from pytest_mlebench.archives.archive import extract, write_zip, write_zip_of
from pytest_mlebench.archives.zip_members import ZipMembers
from pytest_mlebench.errors import PreparationError

TEXT = b"the same words again and again, " * 200_000  # several blocks


@pytest.fixture(params=["isal", "zlib"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The library that packs."""
    if request.param == "zlib":
        monkeypatch.setattr(deflate, "fast_zlib", zlib)
    assert (deflate.fast_zlib is zlib) is (request.param == "zlib")
    return str(request.param)


def contents(archive: Path) -> dict[str, bytes]:
    """Return the members, read by the standard library, which looks at their checksums."""
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def files(folder: Path) -> dict[str, Path]:
    folder.mkdir()
    content = {"text": TEXT, "small": b"small", "empty": b"", "ü": os.urandom(3_000_000)}
    for name, data in content.items():
        (folder / name).write_bytes(data)
    return {f"{name}.bin": folder / name for name in content}


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("compress", [True, False])
def test_any_reader_reads_what_is_written(compress: bool, tmp_path: Path) -> None:
    sources = files(tmp_path / "files")
    write_zip(tmp_path / "a.zip", sources, prefix="in/", compress=compress)
    expected = {f"in/{name}": path.read_bytes() for name, path in sorted(sources.items())}
    assert contents(tmp_path / "a.zip") == expected
    extract(tmp_path / "a.zip", tmp_path / "out")
    assert (tmp_path / "out" / "in" / "text.bin").read_bytes() == TEXT
    packed = (tmp_path / "a.zip").stat().st_size
    assert (packed < len(TEXT)) is compress
    test = [sys.executable, "-m", "zipfile", "-t", str(tmp_path / "a.zip")]
    assert b"Done testing" in subprocess.run(test, capture_output=True, check=True).stdout


@pytest.mark.usefixtures("library")
def test_a_stream_of_blocks_becomes_the_only_member(tmp_path: Path) -> None:
    blocks = (TEXT[start : start + 777_777] for start in range(0, len(TEXT), 777_777))
    write_zip_of(tmp_path / "a.zip", "t.txt", blocks, max_bytes=2 * len(TEXT))
    assert contents(tmp_path / "a.zip") == {"t.txt": TEXT}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_members_are_passed_on_as_they_are(method: int, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "raw.zip", "w", method, compresslevel=9) as zipped:
        for name, data in {"a": b"a" * 9000, "b": os.urandom(6_000_000), "c/d": b""}.items():
            zipped.writestr(f"train/{name}", data)
        zipped.mkdir("train/folder")
    members = ZipMembers(tmp_path / "raw.zip")
    (tmp_path / "new").write_bytes(b"new")
    chosen = {"x": members["train/b"], "y": members["train/a"], "new": tmp_path / "new"}
    write_zip(tmp_path / "a.zip", chosen)
    old = contents(tmp_path / "raw.zip")
    expected = {"new": b"new", "x": old["train/b"], "y": old["train/a"]}
    assert contents(tmp_path / "a.zip") == expected
    with zipfile.ZipFile(tmp_path / "a.zip") as zipped:
        assert zipped.getinfo("y").compress_size == members["train/a"].packed
        assert zipped.getinfo("y").compress_type == method


def test_the_members_of_a_folder_are_listed_by_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "raw.zip", "w") as zipped:
        for name in ("t/b", "t/a", "t/deep/c", "u/a", "t/"):
            zipped.writestr(name, b"")
    members = ZipMembers(tmp_path / "raw.zip")
    assert [member.name for member in members.below("t")] == ["t/a", "t/b"]
    assert len(members) == 4
    assert "t/a" in members
    with pytest.raises(PreparationError) as caught:
        members["t/x"]
    assert str(caught.value) == f"{tmp_path / 'raw.zip'}: has no member 't/x'"


def test_a_zip_that_is_suspicious_is_not_passed_on(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "raw.zip", "w") as zipped:
        zipped.writestr("../a", b"")
    with pytest.raises(PreparationError, match="leads out of its folder"):
        ZipMembers(tmp_path / "raw.zip")


def test_a_zip_that_ends_too_early_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "raw.zip", "w") as zipped:
        zipped.writestr("a", os.urandom(50_000))
    members = {"a": ZipMembers(tmp_path / "raw.zip")["a"]}
    (tmp_path / "raw.zip").write_bytes((tmp_path / "raw.zip").read_bytes()[:10_000])
    with pytest.raises(PreparationError, match="member 'a': the archive ends too early"):
        write_zip(tmp_path / "a.zip", members)
    assert not (tmp_path / "a.zip").exists()


def test_what_is_large_or_many_is_written_as_zip64(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if four gigabytes were four kilobytes, and 65 535 members ten."""
    monkeypatch.setattr(zip_writer, "MARGIN", zip_writer.TOO_LARGE - 4096)
    monkeypatch.setattr(zip_writer, "TOO_MANY", 10)
    for number in range(12):
        (tmp_path / f"{number}").write_bytes(os.urandom(500 * number))
    sources = {f"{number}": tmp_path / f"{number}" for number in range(12)}
    monkeypatch.setattr(zip_writer, "BLOCK_BYTES", 1000)
    write_zip(tmp_path / "a.zip", sources)
    expected = {name: path.read_bytes() for name, path in sorted(sources.items())}
    assert contents(tmp_path / "a.zip") == expected
    assert b"PK\x06\x06" in (tmp_path / "a.zip").read_bytes()


def test_the_same_members_give_the_same_bytes(tmp_path: Path) -> None:
    sources = files(tmp_path / "files")
    for name in ("one.zip", "two.zip"):
        write_zip(tmp_path / name, dict(reversed(sources.items())))
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


@pytest.mark.usefixtures("library")
def test_blocks_that_are_packed_apart_are_one_stream() -> None:
    packed = b"".join(deflate.deflated([b"one ", b"", b"two ", b"three"]))
    assert zlib.decompress(packed, deflate.RAW) == b"one two three"
    assert deflate.inflated(packed, 13) == b"one two three"
    assert zlib.decompress(b"".join(deflate.deflated([])), deflate.RAW) == b""
    assert io.BytesIO(b"".join(deflate.in_blocks([b"a"] * 10))).read() == b"a" * 10
