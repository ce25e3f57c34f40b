"""Putting raw files into their places: trees, lots of them, files that are there already."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import files, link_all, link_tree


def _tree(root: Path, names: list[str]) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def _texts(root: Path) -> dict[str, str]:
    paths = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_text() for path in paths}


def test_a_tree_is_linked_in_several_lots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_BATCH_FILES", 7)
    names = [f"{number % 5}/deep/{number}.jpg" for number in range(40)] + ["top.csv"]
    raw = _tree(tmp_path / "raw", names)
    link_tree(raw, tmp_path / "public")
    assert _texts(tmp_path / "public") == {name: name for name in names}
    assert all((raw / name).samefile(tmp_path / "public" / name) for name in names)


def test_empty_folders_come_along_and_files_to_skip_do_not(tmp_path: Path) -> None:
    raw = _tree(tmp_path / "raw", ["a/1.txt", "a/skip.me", "skip.me"])
    (raw / "empty" / "inner").mkdir(parents=True)
    link_tree(raw, tmp_path / "public", skip=("skip.me",))
    assert _texts(tmp_path / "public") == {"a/1.txt": "a/1.txt"}
    assert (tmp_path / "public" / "empty" / "inner").is_dir()


def test_a_file_that_is_there_gives_way_and_its_bytes_stay(tmp_path: Path) -> None:
    raw = _tree(tmp_path / "raw", ["old", "new"])
    target = tmp_path / "public" / "x"
    link_all([(raw / "old", target), (raw / "new", target)])
    assert target.read_text() == "new"
    assert (raw / "old").read_text() == "old"


def test_a_tree_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PreparationError, match=r"nowhere: no such file in the raw data"):
        link_tree(tmp_path / "nowhere", tmp_path / "public")


def test_where_links_are_impossible_files_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    raw = _tree(tmp_path / "raw", ["a/1", "b/2"])
    monkeypatch.setattr(os, "link", refuse)
    link_tree(raw, tmp_path / "public")
    assert _texts(tmp_path / "public") == {"a/1": "a/1", "b/2": "b/2"}
    assert not (tmp_path / "public" / "a/1").samefile(raw / "a/1")
