"""Archives are unpacked safely, refused when hostile, named when damaged."""

from __future__ import annotations

import io
import os
import stat
import struct
import sys
import tarfile
import zipfile
from pathlib import Path

import py7zr
import pytest
from store_files import tree

from pytest_mlebench.archives import entries, unzip
from pytest_mlebench.archives.archive import (
    extract,
    read_member,
    read_single,
    repack_tar,
    write_7z,
    write_zip,
)
from pytest_mlebench.errors import ConfigError, PreparationError

CONTENT = {"a.csv": b"id\n1\n", "deep/er/b.bin": os.urandom(70_000), "empty": b"", "ü.txt": b"u"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of a few files, one of them too large to be read at once."""
    monkeypatch.setattr(unzip, "CHUNK_BYTES", 1 << 14)
    monkeypatch.setattr(unzip, "MAX_WHOLE_BYTES", 1 << 11)
    for name, data in {**CONTENT, "large.txt": b"0123456789\n" * 100_000}.items():
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "folder"


def pack_zip(path: Path, folder: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for file in sorted(folder.rglob("*")):
            zipped.write(file, file.relative_to(folder))


def pack_bzip2(path: Path, folder: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as zipped:
        for file in sorted(folder.rglob("*")):
            zipped.write(file, file.relative_to(folder))


def pack_tar(path: Path, folder: Path) -> None:
    with tarfile.open(path, "w:gz") as tape:
        tape.add(folder, arcname=".")


def pack_7z(path: Path, folder: Path) -> None:
    with py7zr.SevenZipFile(path, "w") as zipped:
        for file in sorted(folder.rglob("*")):
            zipped.write(file, file.relative_to(folder).as_posix())


PACKERS = {"zip": pack_zip, "bzip2": pack_bzip2, "tar": pack_tar, "7z": pack_7z}


@pytest.mark.parametrize("kind", PACKERS)
def test_an_archive_is_unpacked_whatever_it_is_called(
    tmp_path: Path, folder: Path, kind: str
) -> None:
    PACKERS[kind](tmp_path / "archive", folder)
    extract(tmp_path / "archive", tmp_path / "out")
    assert tree(tmp_path / "out") == tree(folder)


@pytest.mark.parametrize("write", [write_zip, write_7z])
def test_what_is_written_can_be_read(tmp_path: Path, folder: Path, write: object) -> None:
    assert callable(write)
    write(tmp_path / "archive", folder, prefix="train/")
    extract(tmp_path / "archive", tmp_path / "out")
    assert tree(tmp_path / "out" / "train") == tree(folder)
    assert read_member(tmp_path / "archive", "train/a.csv") == b"id\n1\n"
    assert stat.S_IMODE((tmp_path / "out" / "train" / "a.csv").stat().st_mode) == 0o644


def test_a_zip_is_the_same_bytes_whenever_it_is_written(tmp_path: Path, folder: Path) -> None:
    write_zip(tmp_path / "one.zip", folder)
    for path in folder.rglob("*"):
        os.utime(path, (1e9, 1e9))
    (folder / "a.csv").chmod(0o600)
    write_zip(tmp_path / "two.zip", {name: folder / name for name in reversed(tree(folder))})
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_a_zip_can_store_without_compressing(tmp_path: Path, folder: Path) -> None:
    write_zip(tmp_path / "plain.zip", folder, compress=False)
    assert (tmp_path / "plain.zip").stat().st_size > (folder / "large.txt").stat().st_size
    extract(tmp_path / "plain.zip", tmp_path / "out")
    assert tree(tmp_path / "out") == tree(folder)


def test_zips_inside_a_zip_are_unpacked_one_by_one(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "outer").mkdir()
    write_zip(tmp_path / "outer" / "train.zip", folder)
    write_zip(tmp_path / "outer.zip", tmp_path / "outer")
    extract(tmp_path / "outer.zip", tmp_path / "raw")
    extract(tmp_path / "raw" / "train.zip", tmp_path / "raw" / "train")
    assert tree(tmp_path / "raw" / "train") == tree(folder)


def test_the_later_of_two_members_with_one_name_counts(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
        zipped.writestr("x", "first")
        with pytest.warns(UserWarning, match="Duplicate name"):
            zipped.writestr("x", "second")
    extract(tmp_path / "a.zip", tmp_path / "out")
    assert (tmp_path / "out" / "x").read_text() == "second"


def hostile_zip(path: Path, name: str, mode: int = stat.S_IFREG) -> None:
    info = zipfile.ZipInfo(name)
    info.external_attr = (mode | 0o644) << 16
    with zipfile.ZipFile(path, "w") as zipped:
        zipped.writestr("good", "good")
        zipped.writestr(info, "/etc/passwd")


def hostile_tar(path: Path, name: str, mode: int = stat.S_IFREG) -> None:
    info = tarfile.TarInfo(name)
    if mode == stat.S_IFLNK:
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with tarfile.open(path, "w") as tape:
        tape.addfile(info, io.BytesIO())


HOSTILE = [
    ("../out", "leads out of its folder"),
    ("a/../../out", "leads out of its folder"),
    ("..\\out", "leads out of its folder"),
    ("/tmp/out", "has an absolute path"),
    ("\\tmp\\out", "has an absolute path"),
    ("C:\\out", "has an absolute path"),
]


@pytest.mark.parametrize(("name", "problem"), HOSTILE)
@pytest.mark.parametrize("pack", [hostile_zip, hostile_tar])
def test_a_name_that_leads_elsewhere_is_refused(
    tmp_path: Path, name: str, problem: str, pack: object
) -> None:
    assert callable(pack)
    archive = tmp_path / "bad"
    pack(archive, name)
    with pytest.raises(PreparationError) as caught:
        extract(archive, tmp_path / "deep" / "out")
    assert str(caught.value) == f"{archive}: refused, member {name!r} {problem}"
    assert tree(tmp_path).keys() == {"bad"}


@pytest.mark.parametrize("pack", [hostile_zip, hostile_tar])
def test_a_link_is_refused(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    pack(tmp_path / "bad", "link", stat.S_IFLNK)
    with pytest.raises(PreparationError) as caught:
        extract(tmp_path / "bad", tmp_path / "out")
    assert str(caught.value) == (
        f"{tmp_path / 'bad'}: refused, member 'link' is a link or a device, not a file"
    )


def test_a_link_in_a_7z_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file").write_text("x")
    (tmp_path / "in" / "link").symlink_to("file")
    with py7zr.SevenZipFile(tmp_path / "bad.7z", "w") as zipped:
        zipped.write(tmp_path / "in" / "link", "link")
        zipped.write(tmp_path / "in" / "file", "file")
    with pytest.raises(PreparationError, match="'link' is a link or a device"):
        extract(tmp_path / "bad.7z", tmp_path / "out")


def test_nothing_is_written_through_a_link_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "good").symlink_to(tmp_path / "victim")
    hostile_zip(tmp_path / "a.zip", "other")
    with pytest.raises(PreparationError, match="cannot be written"):
        extract(tmp_path / "a.zip", tmp_path / "out")
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_bomb_is_refused(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "MAX_UNCHECKED_BYTES", 1_000_000)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "zeros").write_bytes(bytes(20_000_000))
    PACKERS[kind](tmp_path / "bomb", tmp_path / "in")
    packed = (tmp_path / "bomb").stat().st_size
    with pytest.raises(PreparationError) as caught:
        extract(tmp_path / "bomb", tmp_path / "out")
    assert str(caught.value) == (
        f"{tmp_path / 'bomb'}: refused, {packed} bytes unpack to 20000000, "
        "more than 400 times as many"
    )
    assert not (tmp_path / "out" / "zeros").exists()


def patched(path: Path, member: str, offset: int, value: bytes) -> None:
    """Change a field of a member's entry in the central directory."""
    data = bytearray(path.read_bytes())
    start = data.rindex(member.encode()) - 46
    data[start + offset : start + offset + len(value)] = value
    path.write_bytes(data)


def test_a_member_larger_than_it_says_is_refused(tmp_path: Path) -> None:
    for name, size in (("small.zip", 1000), ("large.zip", 30_000_000)):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as zipped:
            zipped.writestr("data", os.urandom(size // 10) + bytes(size))
        patched(tmp_path / name, "data", 24, struct.pack("<L", size - 1))
        with pytest.raises(PreparationError, match=r"damaged, member 'data'"):
            extract(tmp_path / name, tmp_path / "out")
        assert sum(map(len, tree(tmp_path / "out").values())) <= size


def test_members_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as zipped:
        zipped.writestr("one", "x" * 1000)
        zipped.writestr("two", "x" * 1000)
    patched(path, "two", 42, struct.pack("<L", 10))
    with pytest.raises(PreparationError) as caught:
        extract(path, tmp_path / "out")
    assert str(caught.value) == f"{path}: refused, member 'two' overlaps another"


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as zipped:
        zipped.writestr("data", "x")
    patched(path, "data", 8, struct.pack("<H", 1))
    with pytest.raises(PreparationError) as caught:
        extract(path, tmp_path / "out")
    assert str(caught.value) == f"{path}: refused, member 'data' is encrypted"


def test_what_the_disk_cannot_hold_is_not_begun(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_zip(tmp_path / "a.zip", folder)
    usage = type("Usage", (), {"free": 1000})()
    monkeypatch.setattr(entries.shutil, "disk_usage", lambda _: usage)
    total = sum(map(len, tree(folder).values()))
    with pytest.raises(PreparationError) as caught:
        extract(tmp_path / "a.zip", tmp_path / "out")
    assert str(caught.value) == (
        f"{tmp_path / 'a.zip'}: unpacks to {total} bytes, "
        f"but {tmp_path / 'out'} has room for 1000 only: free some space"
    )


@pytest.mark.parametrize("share", [0.0001, 0.3, 0.9, 0.9999])
@pytest.mark.parametrize("kind", PACKERS)
def test_a_truncated_archive_is_named(
    tmp_path: Path, folder: Path, kind: str, share: float
) -> None:
    PACKERS[kind](tmp_path / "whole.tar.gz", folder)
    data = (tmp_path / "whole.tar.gz").read_bytes()
    archive = tmp_path / "cut.tar.gz"
    archive.write_bytes(data[: max(5, int(len(data) * share))])
    with pytest.raises(PreparationError) as caught:
        extract(archive, tmp_path / "out")
    assert str(caught.value).startswith(f"{archive}: ")


@pytest.mark.parametrize("kind", PACKERS)
def test_wrong_bytes_are_noticed(tmp_path: Path, folder: Path, kind: str) -> None:
    archive = tmp_path / "archive"
    PACKERS[kind](archive, folder)
    data = bytearray(archive.read_bytes())
    for position in range(len(data) // 3, len(data) // 3 + 40):
        data[position] ^= 0x5A
    archive.write_bytes(data)
    with pytest.raises(PreparationError) as caught:
        extract(archive, tmp_path / "out")
    assert str(caught.value).startswith(f"{archive}: damaged")


def test_a_file_that_is_no_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "page.zip").write_text("<html>")
    with pytest.raises(PreparationError) as caught:
        extract(tmp_path / "page.zip", tmp_path / "out")
    assert str(caught.value) == (
        f"{tmp_path / 'page.zip'}: neither zip, 7z nor tar, it begins with b'<html>'"
    )


def test_an_archive_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PreparationError, match="no such archive"):
        extract(tmp_path / "none.zip", tmp_path / "out")
    with pytest.raises(PreparationError, match="is a folder, not an archive"):
        extract(tmp_path, tmp_path / "out")


@pytest.mark.parametrize("kind", PACKERS)
def test_a_member_that_is_not_there_is_named(tmp_path: Path, folder: Path, kind: str) -> None:
    PACKERS[kind](tmp_path / "archive", folder)
    with pytest.raises(PreparationError) as caught:
        read_member(tmp_path / "archive", "none.csv")
    assert str(caught.value) == f"{tmp_path / 'archive'}: has no member 'none.csv'"


@pytest.mark.parametrize("write", [write_zip, write_7z])
def test_a_file_that_is_alone_in_an_archive_is_read_whatever_its_name(
    tmp_path: Path, folder: Path, write: object
) -> None:
    assert callable(write)
    write(tmp_path / "one", {"deep/table.csv": folder / "a.csv"})
    assert read_single(tmp_path / "one") == b"id\n1\n"
    write(tmp_path / "many", folder)
    with pytest.raises(PreparationError) as caught:
        read_single(tmp_path / "many")
    assert str(caught.value) == f"{tmp_path / 'many'}: has 5 files, expected a single one"


def test_a_missing_library_names_the_extra(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "py7zr", None)
    write_7z(tmp_path / "a.7z", folder)
    with pytest.raises(ConfigError) as caught:
        extract(tmp_path / "a.7z", tmp_path / "out")
    assert str(caught.value) == (
        "7z archives need py7zr: pip install 'pytest-mlebench[competitions]'"
    )


def test_a_folder_that_is_not_there_is_not_packed(tmp_path: Path) -> None:
    with pytest.raises(PreparationError, match="no such folder to pack"):
        write_zip(tmp_path / "a.zip", tmp_path / "none")


def test_members_of_a_tar_are_copied_under_new_names(tmp_path: Path) -> None:
    source = tmp_path / "all.tar.gz"
    with tarfile.open(source, "w:gz") as tape:
        for name in ("all/a.jpg", "all/b.jpg", "all/c.jpg"):
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(name), 1_500_000_000
            tape.addfile(member, io.BytesIO(name.encode()))
    parts = {"train.tar": {"all/c.jpg": "c.jpg"}, "test.tar": {"all/a.jpg": "0/a.jpg"}}
    repack_tar(source, {tmp_path / part: names for part, names in parts.items()})
    assert read_member(tmp_path / "train.tar", "c.jpg") == b"all/c.jpg"
    with tarfile.open(tmp_path / "test.tar", "r:") as tape:  # not compressed
        assert [(info.name, info.mtime) for info in tape] == [("0/a.jpg", 0)]


def test_a_member_that_a_tar_lacks_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    source = tmp_path / "all.tar"
    with tarfile.open(source, "w"):
        pass
    with pytest.raises(PreparationError, match=r"all\.tar: has no member 'a\.jpg'"):
        repack_tar(source, {tmp_path / "new.tar": {"a.jpg": "a.jpg"}})
    assert [path.name for path in tmp_path.iterdir()] == ["all.tar"]


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a zip of so many members that processes share them."""
    monkeypatch.setattr(unzip, "MIN_SHARED_MEMBERS", 2000)
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for number in range(unzip.MIN_SHARED_MEMBERS + 100):
            zipped.writestr(f"{number % 7}/{number}.txt", f"{number}\n" * 20)
    return path


def test_many_members_are_unpacked_by_several_processes(tmp_path: Path, many: Path) -> None:
    unzip.unzip(many, tmp_path / "out", jobs=3)
    with zipfile.ZipFile(many) as opened:
        expected = {name: opened.read(name) for name in opened.namelist()}
    assert tree(tmp_path / "out") == expected


def test_a_damaged_member_is_named_by_whichever_process_meets_it(
    tmp_path: Path, many: Path
) -> None:
    patched(many, "3/1501.txt", 16, struct.pack("<L", 1))
    with pytest.raises(PreparationError) as caught:
        unzip.unzip(many, tmp_path / "out", jobs=2)
    assert str(caught.value) == (
        f"{many}: damaged, member '3/1501.txt': wrong size or checksum; fetch it again"
    )


def test_a_target_that_cannot_be_written_is_named_by_whichever_process_meets_it(
    tmp_path: Path, many: Path
) -> None:
    (tmp_path / "out" / "3" / "1501.txt").mkdir(parents=True)
    with pytest.raises(PreparationError, match=r"'3/1501\.txt': is both a file and a folder"):
        unzip.unzip(many, tmp_path / "out", jobs=2)


@pytest.mark.parametrize("jobs", [1, 2])
def test_bytes_are_reported_while_a_zip_is_unpacked(
    jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unzip, "MIN_SHARED_MEMBERS", 2)
    monkeypatch.setattr(unzip, "BATCH_MEMBERS", 1)
    for number in range(4):
        (tmp_path / f"{number}").write_bytes(bytes(1000))
    write_zip(tmp_path / "it.zip", {f"{number}": tmp_path / f"{number}" for number in range(4)})
    reports: list[tuple[int, int]] = []
    unzip.unzip(
        tmp_path / "it.zip",
        tmp_path / "out",
        jobs=jobs,
        report=lambda done, total: reports.append((done, total)),
    )
    assert reports == [(done, 4000) for done in range(0, 4000, 1000 * jobs)]
    assert len(list((tmp_path / "out").iterdir())) == 4
