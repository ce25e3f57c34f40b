"""Layers are applied as OCI says, and nothing in them leaves the tree."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest
from image_archives import layer, member

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.sandbox.rootless import layer_tree
from pytest_mlebench.sandbox.rootless.layer_tree import LayerTree

Members = tuple[tuple[tarfile.TarInfo, bytes], ...]

DIR, LINK, HARD = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree to be, beside a file of the host."""
    (tmp_path / "victim").write_text("untouched")
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def apply(root: Path, *layers: Members) -> None:
    tree = LayerTree(root, "test.tar")
    for members in layers:
        tree.apply(io.BytesIO(layer(*members)))


def file(name: str, text: str = "", **facts: Any) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, content=text.encode(), **facts)


def names(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def test_later_layers_win(root: Path) -> None:
    apply(root, (file("a", "old"), file("b", "kept")), (file("./a", "new"),))
    assert (root / "a").read_text() == "new"
    assert (root / "b").read_text() == "kept"


def test_a_whiteout_removes_what_was_there_before(root: Path) -> None:
    before = (file("etc/a"), file("etc/sub/b"), file("etc/c"))
    apply(root, before, (file("etc/.wh.a"), file("etc/.wh.sub"), file("none/.wh.x")))
    assert names(root) == {"etc", "etc/c"}


def test_a_whiteout_spares_what_its_own_layer_brings(root: Path) -> None:
    apply(root, (file("a", "old"),), (file("a", "new"), file(".wh.a")))
    assert (root / "a").read_text() == "new"


@pytest.mark.parametrize("last", [True, False])
def test_an_opaque_folder_has_nothing_of_before(root: Path, last: bool) -> None:
    before = (file("etc/a"), file("etc/sub/b"), file("other/c"))
    own = (file("etc/new"), file("etc/sub/own"))
    opaque = (file("etc/.wh..wh..opq"),)
    apply(root, before, (*own, *opaque) if last else (*opaque, *own))
    assert names(root) == {"etc", "etc/new", "etc/sub", "etc/sub/own", "other", "other/c"}


def test_files_and_folders_replace_each_other(root: Path) -> None:
    before = (file("a/b"), file("c"), member("d", LINK, linkname="a"))
    apply(root, before, (file("a"), member("c", DIR), file("c/x"), member("d", DIR), file("d/y")))
    assert names(root) == {"a", "c", "c/x", "d", "d/y"}
    assert not (root / "d").is_symlink()


def test_a_hard_link_is_one_file_until_a_layer_replaces_it(root: Path) -> None:
    apply(root, (file("bin/a", "old"), member("b", HARD, linkname="bin/a")))
    assert (root / "b").samefile(root / "bin/a")
    apply(root, (file("b", "new"),))
    assert (root / "bin/a").read_text() == "old"


def test_links_stay_as_they_are_written(root: Path) -> None:
    apply(root, (member("out", LINK, linkname="/etc/passwd"), member("up", LINK, linkname="../x")))
    assert os.readlink(root / "out") == "/etc/passwd"  # noqa: PTH115  # as it is written
    assert os.readlink(root / "up") == "../x"  # noqa: PTH115


def test_everybody_may_read_and_nothing_is_setuid(root: Path) -> None:
    apply(
        root,
        (
            file("su", mode=0o6711),
            file("secret", mode=0o600),
            member("closed", DIR, mode=0o700),
            file("closed/no-rights", mode=0o000),
        ),
    )
    found = {name: (root / name).stat().st_mode & 0o7777 for name in names(root)}
    assert found == {
        "su": 0o755,
        "secret": 0o644,
        "closed": 0o755,
        "closed/no-rights": 0o644,
    }


def test_times_are_kept_and_owners_are_not(root: Path) -> None:
    apply(root, (file("a", uid=4242, gid=4242),))
    assert (root / "a").stat().st_mtime == 1_500_000_000
    assert (root / "a").stat().st_uid == os.getuid()


def test_devices_and_pipes_are_passed_over(root: Path) -> None:
    kinds = (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
    apply(root, tuple(member(f"dev/{number}", kind) for number, kind in enumerate(kinds)))
    assert not any((root / "dev").glob("*"))


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ((file("/victim", "x"),), "has a path that leads out of it: '/victim'"),
        ((file("../victim", "x"),), "has a path that leads out of it: '../victim'"),
        ((file("a/../../victim", "x"),), "has a path that leads out of it: 'a/../../victim'"),
        (
            (member("l", LINK, linkname=".."), file("l/victim", "x")),
            "has a path through a link or a file: 'l/victim'",
        ),
        (
            (member("l", LINK, linkname=".."), file("l/.wh.victim")),
            "has a path through a link or a file: 'l/.wh.victim'",
        ),
        (
            (member("l", LINK, linkname=".."), file("l/.wh..wh..opq")),
            "has a path through a link or a file: 'l/.wh..wh..opq'",
        ),
        (
            (member("h", HARD, linkname="../victim"),),
            "has a path that leads out of it: '../victim'",
        ),
        (
            (member("l", LINK, linkname=".."), member("h", HARD, linkname="l/victim")),
            "has a path through a link or a file: 'l/victim'",
        ),
        ((member("h", HARD, linkname="none"),), "has a link to a file that is not there: 'none'"),
        (
            (file("a/" * 128 + "b"),),
            "has a path of 129 names and 257 letters: at most 128 and 1024 can be unpacked",
        ),
        ((file("a/.wh.."),), None),
        ((file("a/.wh."),), None),
    ],
)
def test_nothing_leaves_the_tree(root: Path, members: Members, problem: str | None) -> None:
    if problem is None:
        apply(root, (file("a/x"),), members)
        assert names(root) == {"a", "a/x"}
    else:
        with pytest.raises(ConfigError) as error:
            apply(root, members)
        assert str(error.value) == f"the image test.tar {problem}"
    assert (root.parent / "victim").read_text() == "untouched"
    assert (root.parent / "victim").stat().st_nlink == 1


def test_a_layer_that_is_cut_off_is_refused(root: Path) -> None:
    whole = layer(file("a", "x" * 5000))
    with pytest.raises(ConfigError, match=r"the image test\.tar has a layer that cannot be read"):
        LayerTree(root, "test.tar").apply(io.BytesIO(whole[:1500]))


def test_an_image_does_not_fill_the_disk(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_tree, "RESERVE_BYTES", 1 << 60)
    with pytest.raises(ConfigError, match=r"the image test\.tar does not fit on the disk of /.*GB"):
        apply(root, (file("a", "x"),))
