"""A bundle that was made to harm is refused, or judged as it is."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest
from bundles import GradedRun, failed

from pytest_mlebench.archives import entries
from pytest_mlebench.audit.bundle import MANIFEST
from pytest_mlebench.errors import ConfigError


def _zip(path: Path, *members: tuple[str, bytes], mode: int = stat.S_IFREG) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = (mode | 0o644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return path


@pytest.mark.parametrize(
    ("members", "mode", "words"),
    [
        ([("a.txt", b"x")], stat.S_IFREG, "not a bundle of pytest-mlebench (no manifest.json)"),
        ([(MANIFEST, b"{}"), ("../x", b"x")], stat.S_IFREG, "leads out of its folder"),
        ([(MANIFEST, b"{}"), ("/etc/x", b"x")], stat.S_IFREG, "has an absolute path"),
        ([(MANIFEST, b"/etc/passwd")], stat.S_IFLNK, "is a link or a device"),
        (
            [(MANIFEST, b"{}"), ("run/a.csv", b"x"), ("run/./a.csv", b"y")],
            stat.S_IFREG,
            "refused, two members of it are written to run/a.csv",
        ),
        (
            [(MANIFEST, b"{}"), ("run", b"x"), ("run/a.csv", b"y")],
            stat.S_IFREG,
            "refused, two members of it are written to run",
        ),
    ],
)
def test_hostile_archives_are_refused(
    run: GradedRun, tmp_path: Path, members: list[tuple[str, bytes]], mode: int, words: str
) -> None:
    with pytest.raises(ConfigError) as error:
        run.verify(_zip(tmp_path / "h.zip", *members, mode=mode))
    assert words in str(error.value)


def test_a_bundle_that_would_fill_the_disk_is_refused(
    run: GradedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "MAX_UNCHECKED_BYTES", 1 << 20)
    bomb = _zip(tmp_path / "h.zip", (MANIFEST, b"{}"), ("run/run.json", bytes(1 << 22)))
    with pytest.raises(ConfigError, match="more than 400 times as many"):
        run.verify(bomb)
    understated = bomb.read_bytes().replace((1 << 22).to_bytes(4, "little"), b"\1\0\0\0")
    bomb.write_bytes(understated)  # one byte, it says
    with pytest.raises(ConfigError, match=r"h\.zip"):
        run.verify(bomb)


def test_a_manifest_that_is_none_fails(run: GradedRun, tmp_path: Path) -> None:
    for content in (b"{}", b"[", b"[1]", b'{"format": "pytest-mlebench bundle"}'):
        claims = run.verify(_zip(tmp_path / "h.zip", (MANIFEST, content)))
        assert list(failed(claims)) == ["manifest"]


def test_truncated_and_absent_files_are_named(run: GradedRun, bundle: Path, tmp_path: Path) -> None:
    short = tmp_path / "short.zip"
    short.write_bytes(bundle.read_bytes()[:-100])
    for path, words in (
        (short, "not a readable zip"),
        (tmp_path / "none.zip", "no such file"),
        (tmp_path, "a folder, not a bundle"),
    ):
        with pytest.raises(ConfigError, match=words):
            run.verify(path)
