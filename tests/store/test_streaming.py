"""A zip is unpacked while it arrives; what is left over is unpacked afterwards."""

from __future__ import annotations

import hashlib
import io
import os
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from kaggle_server import Fault, KaggleServer
from store_files import MakeCompetition, tree, zipped

from pytest_mlebench.archives import entries, streaming
from pytest_mlebench.archives.streaming import EarlyUnzip
from pytest_mlebench.archives.unzip import Done, unzip
from pytest_mlebench.competition import Checksums, Competition
from pytest_mlebench.errors import DatasetError, PreparationError
from pytest_mlebench.store.store import Store

FILES = {f"d{i % 3}/{i}.bin": os.urandom(3000 + i) for i in range(40)}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "MIN_FOLLOWED_BYTES", 1)


def packed(
    files: dict[str, bytes] = FILES,
    method: int = zipfile.ZIP_DEFLATED,
    change: Callable[[zipfile.ZipInfo], None] | None = None,
) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            if change:
                change(info)
            archive.writestr(info, data)
    return file.getvalue()


class Arriving:
    """A zip that arrives in pieces."""

    def __init__(self, folder: Path, data: bytes) -> None:
        self.path, self.target, self.data = folder / "a.zip.part", folder / "out", data
        self.early = EarlyUnzip(self.path, self.target)
        self.path.write_bytes(b"")

    def until(self, size: int) -> None:
        """Let bytes arrive, and wait until the files that are whole lie there."""
        with self.path.open("ab") as file:
            file.write(self.data[self.path.stat().st_size : size])
        self.early.grow(size)

    def wait_for(self, count: int) -> None:
        deadline = time.monotonic() + 30
        while len(tree(self.target) if self.target.exists() else ()) < count:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def complete(self, done: Done) -> None:
        self.until(len(self.data))
        unzip(self.path, self.target, done=done)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_larger_than_the_window_are_unpacked_too(tmp_path: Path, method: int) -> None:
    files = {"large": os.urandom(1 << 20) * 9, "small": b"x"}
    arriving = Arriving(tmp_path, packed(files, method))
    arriving.until(len(arriving.data))
    arriving.wait_for(2)
    done = arriving.early.finish()
    assert [name for name, size, _ in done.values() if size > 0] == ["large", "small"]
    arriving.complete(done)
    assert tree(tmp_path / "out") == files


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_are_unpacked_as_they_arrive(tmp_path: Path, method: int) -> None:
    arriving = Arriving(tmp_path, packed(method=method))
    arriving.until(len(arriving.data) // 2)
    arriving.wait_for(15)
    done = arriving.early.finish()
    assert 15 <= len(done) < 25
    first = tmp_path / "out" / "d0" / "0.bin"
    before = first.stat().st_mtime_ns
    arriving.complete(done)
    assert tree(tmp_path / "out") == FILES
    assert first.stat().st_mtime_ns == before  # not unpacked again


def test_a_whole_zip_is_unpacked_to_its_end(tmp_path: Path) -> None:
    arriving = Arriving(tmp_path, packed())
    arriving.until(len(arriving.data))
    arriving.wait_for(40)
    arriving.complete(arriving.early.finish())
    assert tree(tmp_path / "out") == FILES


def test_a_small_download_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "MIN_FOLLOWED_BYTES", 1 << 20)
    arriving = Arriving(tmp_path, packed())
    arriving.until(len(arriving.data))
    assert arriving.early.finish() == {}
    assert not arriving.target.exists()


def test_nothing_arrived_means_nothing_done(tmp_path: Path) -> None:
    assert Arriving(tmp_path, packed()).early.finish() == {}


def test_a_restart_forgets_everything(tmp_path: Path) -> None:
    arriving = Arriving(tmp_path, packed({"old": b"x" * 5000, "older": b""}))
    arriving.until(len(arriving.data))
    arriving.wait_for(2)
    arriving.early.restart()
    assert not (tmp_path / "out").exists()
    arriving.path.unlink()
    arriving.data = packed()
    arriving.path.write_bytes(b"")
    arriving.until(len(arriving.data))
    arriving.wait_for(40)
    arriving.complete(arriving.early.finish())
    assert tree(tmp_path / "out") == FILES


def test_a_member_that_the_index_does_not_know_is_removed(tmp_path: Path) -> None:
    # A zip with a member cut out of its index, as some programs delete them.
    ghost = packed({"ghost": b"boo" * 1000})
    body = ghost[: ghost.index(b"PK\1\2")]
    with io.BytesIO() as file:
        file.write(body)
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr("real", b"real")
        arriving = Arriving(tmp_path, file.getvalue())
    arriving.until(len(arriving.data))
    arriving.wait_for(2)
    done = arriving.early.finish()
    arriving.complete(done)
    assert tree(tmp_path / "out") == {"real": b"real"}


def test_an_unusual_member_ends_the_head_start(tmp_path: Path) -> None:
    data = packed({"a": b"a" * 100, "b": b"b" * 100}, zipfile.ZIP_BZIP2)
    arriving = Arriving(tmp_path, data)
    arriving.until(len(data))
    assert arriving.early.finish() == {}
    arriving.complete({})
    assert len(tree(tmp_path / "out")) == 2


def test_a_name_that_leads_elsewhere_is_never_written(tmp_path: Path) -> None:
    data = packed({"good": b"good", "../evil": b"evil", "later": b"later"})
    arriving = Arriving(tmp_path, data)
    arriving.until(len(data))
    arriving.wait_for(1)
    done = arriving.early.finish()
    assert [name for name, _, _ in done.values()] == ["good"]
    with pytest.raises(PreparationError, match="leads out of its folder"):
        arriving.complete(done)
    assert not (tmp_path / "evil").exists()


def test_a_bomb_ends_the_head_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "MAX_UNCHECKED_BYTES", 1000)
    follower = streaming.Follower(tmp_path / "bomb.zip", tmp_path / "out", check=True)
    monkeypatch.setattr(streaming, "MAX_UNCHECKED_BYTES", 1000)
    data = packed({"zeros": bytes(10_000_000)})
    (tmp_path / "bomb.zip").write_bytes(data)
    follower.arrived, follower.ended = len(data), True
    follower.run()
    assert follower.done == {}


def test_a_damaged_member_is_left_to_the_unpacking_proper(tmp_path: Path) -> None:
    data = bytearray(packed())
    position = data.index(FILES["d1/1.bin"][:8]) if FILES["d1/1.bin"][:8] in data else 4000
    data[position + 50] ^= 0xFF
    arriving = Arriving(tmp_path, bytes(data))
    arriving.until(len(data))
    arriving.wait_for(1)
    done = arriving.early.finish()
    with pytest.raises(PreparationError, match="damaged, member"):
        arriving.complete(done)


@pytest.fixture
def competition(
    kaggle: KaggleServer, tmp_path: Path, make_competition: MakeCompetition
) -> Competition:
    made = make_competition(source="kaggle")
    with io.BytesIO(zipped(made, tmp_path)) as file:
        with zipfile.ZipFile(file, "a") as archive:
            for name, data in FILES.items():
                archive.writestr(name, data)
        kaggle.add("tiny", file.getvalue())
    return made


def test_a_download_is_unpacked_on_the_way(
    competition: Competition, kaggle: KaggleServer, tmp_path: Path
) -> None:
    kaggle.rate = 100_000
    raw = tmp_path / "data/tiny/raw"
    Store(tmp_path / "data").ensure(competition, keep_raw="all")
    found = tree(raw)
    assert {name: found[name] for name in FILES} == FILES


def test_a_damaged_download_is_found_out_by_the_sum_of_the_zip(
    competition: Competition, kaggle: KaggleServer, tmp_path: Path
) -> None:
    sums = Checksums(hashlib.md5(kaggle.blobs["tiny"].data).hexdigest(), {}, {})
    kaggle.faults["blob"].append(Fault(corrupt=True))
    with pytest.raises(DatasetError, match="is not the published zip"):
        Store(tmp_path / "data").ensure(replace(competition, checksums=sums))
    assert not (tmp_path / "data/tiny/prepared").exists()


def test_a_download_that_begins_anew_is_unpacked_anew(
    competition: Competition, kaggle: KaggleServer, tmp_path: Path
) -> None:
    kaggle.blobs["tiny"].announces_md5 = True
    kaggle.faults["blob"].append(Fault(corrupt=True))
    Store(tmp_path / "data").ensure(competition, keep_raw="all")
    found = tree(tmp_path / "data/tiny/raw")
    assert {name: found[name] for name in FILES} == FILES
