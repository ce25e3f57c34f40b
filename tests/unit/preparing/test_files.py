"""Putting raw files into their places: trees, lots of them, files that are there already."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import (
    files,
    link_all,
    link_renamed,
    link_tree,
    list_files,
    list_names,
)


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


def test_files_get_new_names_in_new_folders(tmp_path: Path) -> None:
    raw = _tree(tmp_path / "raw", ["a/1", "a/2", "b/3"])
    new = {"a/1": "x/1", "b/3": "x/deep/2", "a/2": "3"}
    link_renamed(new.items(), raw, tmp_path / "public")
    assert _texts(tmp_path / "public") == {"x/1": "a/1", "x/deep/2": "b/3", "3": "a/2"}


@pytest.mark.parametrize("name", ["a/9", "nowhere/1", "a/1/2"])
def test_a_file_that_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    raw = _tree(tmp_path / "raw", ["a/1"])
    with pytest.raises(PreparationError, match=rf"raw/{name}: no such file in the raw data"):
        link_renamed([("a/1", "1"), (name, "2")], raw, tmp_path / "public")


def test_symbolic_links_are_put_as_they_are_or_followed(tmp_path: Path) -> None:
    raw = _tree(tmp_path / "raw", ["a/1"])
    _tree(tmp_path / "far", ["f/2"])
    (raw / "link").symlink_to(tmp_path / "far" / "f" / "2")
    (raw / "folder").symlink_to(tmp_path / "far" / "f")
    link_tree(raw, tmp_path / "plain")
    assert (tmp_path / "plain" / "link").is_symlink()
    assert not (tmp_path / "plain" / "folder").exists()
    link_tree(raw, tmp_path / "followed", follow=True)
    assert _texts(tmp_path / "followed") == {"a/1": "a/1", "link": "f/2", "folder/2": "f/2"}
    assert not (tmp_path / "followed" / "link").is_symlink()


def test_files_are_listed_by_name_and_folders_are_not(tmp_path: Path) -> None:
    raw = _tree(tmp_path / "raw", ["b.png", "a.png", ".c.png", "a.txt", "deep.png/x"])
    assert list_names(raw, "*.png") == [".c.png", "a.png", "b.png"]
    assert list_files(raw, "a.*") == [raw / "a.png", raw / "a.txt"]
    with pytest.raises(PreparationError, match="nowhere: no such folder in the raw data"):
        list_names(raw / "nowhere")
