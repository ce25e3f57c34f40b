"""Names in a tar, without unpacking it."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import list_tar


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return a compressed tar of two files and a folder."""
    (tmp_path / "a.zip").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "b.txt").write_text("b")
    (tmp_path / "folder").mkdir()
    path = tmp_path / "files.tar.gz"
    with tarfile.open(path, "w:gz") as tape:
        for name in ("a.zip", "folder", "b.txt"):
            tape.add(tmp_path / name, f"./{name}")
    return path


def test_files_are_listed_in_order_and_folders_are_not(archive: Path) -> None:
    assert list_tar(archive) == ["./a.zip", "./b.txt"]


def test_a_truncated_archive_is_named(archive: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:-20])
    with pytest.raises(PreparationError, match=r"files\.tar\.gz: damaged: .*; fetch it again$"):
        list_tar(archive)
