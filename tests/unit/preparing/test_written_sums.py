"""A sum that was taken while a file was written counts for that file, and for no other."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from opened_files import files_read

from pytest_mlebench._files import md5
from pytest_mlebench.host import crew
from pytest_mlebench.preparing import (
    csv_parts,
    csv_rows,
    csv_source,
    new_file,
    open_rows,
    write_csv,
    write_json,
    written_sums,
)
from pytest_mlebench.preparing.coco import read_coco, write_coco
from pytest_mlebench.preparing.written_sums import WrittenSums, followed, noted_sums

NAME = "train.csv"
TABLE = pd.DataFrame({"id": range(3000), "x": np.arange(3000) / 7, "name": ["é, so"] * 3000})
Write = Callable[[Path], None]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of any size count, in blocks of 100 bytes; large files are those of any size, too."""
    monkeypatch.setattr(written_sums, "MIN_NOTED_BYTES", 1)
    monkeypatch.setattr(written_sums, "BLOCK_BYTES", 100)
    monkeypatch.setattr(csv_parts, "PART_CHUNKS", 1)
    monkeypatch.setattr(csv_parts, "CHUNK_CELLS", 1000)
    monkeypatch.setattr(csv_rows, "MIN_INDEXED_BYTES", 0)
    monkeypatch.setattr(csv_rows, "MIN_COPIED_BYTES", 5000)
    monkeypatch.setattr(csv_rows, "MAX_COPIED_BYTES", 5000)
    monkeypatch.setattr(csv_rows, "MIN_REWRITTEN_BYTES", 5000)
    monkeypatch.setattr(csv_source, "PART_BYTES", 5000)
    monkeypatch.setattr(crew, "host_cpus", lambda: 2)


def noted(write: Write, path: Path) -> WrittenSums:
    """Return what is noted of a file with the name that is asked for."""
    with noted_sums([NAME]) as sums:
        write(path)
    return sums


def is_read(sums: WrittenSums, path: Path) -> bool:
    """Ask for a sum, which must be right, and tell whether the file was read for it."""
    with files_read() as opened:
        found = sums.md5(path)
    assert found == md5(path)
    return path in opened


def pieces(path: Path) -> None:
    buffer = bytearray(7)
    with new_file(path) as file:
        for number in range(200):
            buffer[:] = b"%7d" % number  # the same memory, used again
            file.write(buffer)
        file.write(bytes(range(256)) * 10)
        file.writelines([b"", b"end"])


def rows(path: Path, **changes: object) -> None:
    raw = path.with_name("raw.csv")
    raw.write_text(TABLE.to_csv(index=False), encoding="utf-8")
    order = np.random.default_rng(0).permutation(3000)[:2000]
    with open_rows(raw) as opened:
        assert isinstance(opened, csv_rows.FileRows)
        opened.write(order, path, **changes)
    kept = TABLE.iloc[order].assign(**changes.get("assign", {}))
    assert path.read_text(encoding="utf-8") == kept.to_csv(index=False)


def collection(path: Path) -> None:
    records = {
        "annotations": [{"category_id": number % 3} for number in range(300)],
        "images": [{"file_name": f"{number}.jpg"} for number in range(300)],
    }
    raw = path.with_name("raw.json")
    raw.write_text(json.dumps(records))
    write_coco(read_coco(raw), path)


WRITERS: dict[str, Write] = {
    "a table": lambda path: write_csv(TABLE, path),
    "json": lambda path: write_json({"a": list(range(2000)), "b": "é"}, path),
    "json with options": lambda path: write_json(list(range(2000)), path, indent=1),
    "a collection": collection,
    "rows as they are": rows,
    "rows with a change": lambda path: rows(path, assign={"x": 1}),
    "pieces": pieces,
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_the_sum_is_that_of_the_file(write: Write, tmp_path: Path) -> None:
    path = tmp_path / "new" / NAME
    path.parent.mkdir()
    sums = noted(write, path)
    assert [line[-1] for line in sums.to_data()] == [md5(path)]
    assert not is_read(sums, path)


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_nothing_is_different_where_no_sum_is_asked_for(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_rows, "MIN_INDEXED_BYTES", 0)
    monkeypatch.setattr(crew, "MAX_CREW", 1)
    monkeypatch.setattr(written_sums, "Digest", None)  # whoever took a sum would fail
    write(tmp_path / NAME)
    assert noted(write, tmp_path / "other.csv").to_data() == []
    assert md5(tmp_path / "other.csv") == md5(tmp_path / NAME)


def test_a_small_file_is_read_again(tmp_path: Path) -> None:
    assert is_read(noted(pieces, tmp_path / NAME), tmp_path / NAME)


def test_a_large_file_is_not(tmp_path: Path) -> None:
    def large(path: Path) -> None:
        with new_file(path) as file:
            file.write(os.urandom(written_sums.MIN_NOTED_BYTES))

    sums = noted(large, tmp_path / NAME)
    assert not is_read(sums, tmp_path / NAME)


def rewritten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[::-1])


def appended(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


def tampered(path: Path) -> None:
    before = path.stat()
    rewritten(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(path: Path) -> None:
    other = path.with_name("other")
    shutil.copy2(path, other)
    tampered(other)
    other.replace(path)


def renamed(path: Path) -> None:
    path.rename(path.with_name("other")).rename(path)


def linked(path: Path) -> None:
    path.with_name("other").hardlink_to(path)


def made_writable(path: Path) -> None:
    path.chmod(0o666)


CHANGES = (rewritten, appended, tampered, replaced, renamed, linked, made_writable, Path.touch)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_to_which_anything_was_done_is_read_again(change: Write, tmp_path: Path) -> None:
    path = tmp_path / NAME
    sums = noted(pieces, path)
    change(path)
    assert is_read(sums, path)


@pytest.mark.usefixtures("small")
def test_a_change_at_once_is_seen_however_slowly_the_kernel_ticks(tmp_path: Path) -> None:
    path = tmp_path / NAME

    def hasty(path: Path) -> None:
        pieces(path)
        tampered(path)

    assert all(is_read(noted(hasty, path), path) for _ in range(20))


@pytest.mark.usefixtures("small")
def test_a_file_that_is_written_twice_has_its_last_sum(tmp_path: Path) -> None:
    def twice(path: Path) -> None:
        write_csv(TABLE, path)
        pieces(path)

    assert not is_read(noted(twice, tmp_path / NAME), tmp_path / NAME)


@pytest.mark.usefixtures("small")
def test_the_folder_may_be_renamed(tmp_path: Path) -> None:
    sums = noted(pieces, tmp_path / "new" / NAME)
    (tmp_path / "new").rename(tmp_path / "public")
    assert not is_read(sums, tmp_path / "public" / NAME)


@pytest.mark.usefixtures("small")
def test_a_file_system_with_coarse_times_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(written_sums, "COARSE_NS", 1)  # every time is a multiple of it
    assert is_read(noted(pieces, tmp_path / NAME), tmp_path / NAME)


@pytest.mark.usefixtures("small")
def test_what_is_left_of_a_failed_writing_has_no_sum(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        with suppress(KeyError), new_file(path) as file:
            file.write(b"half of it")
            raise KeyError

    assert noted(fail, tmp_path / NAME).to_data() == []
    assert (tmp_path / NAME).read_bytes() == b"half of it"


@pytest.mark.usefixtures("small")
def test_a_file_that_was_not_followed_to_its_end_has_no_sum(tmp_path: Path) -> None:
    def follow_some(path: Path) -> None:
        path.write_bytes(bytes(1000))
        with followed(path) as follow:
            follow(300)
            follow(200)
            follow(999)

    assert noted(follow_some, tmp_path / NAME).to_data() == []


@pytest.mark.usefixtures("small")
def test_a_file_whose_sum_is_taken_can_only_be_added_to(tmp_path: Path) -> None:
    def go_back(path: Path) -> None:
        with new_file(path) as file:
            for forbidden in (lambda: file.seek(0), file.fileno, file.truncate, file.read):
                with pytest.raises(io.UnsupportedOperation):
                    forbidden()

    noted(go_back, tmp_path / NAME)


@pytest.mark.usefixtures("small")
def test_sums_pass_to_another_process_as_json(tmp_path: Path) -> None:
    sums = noted(pieces, tmp_path / NAME)
    received = WrittenSums.from_data(json.loads(json.dumps(sums.to_data())))
    assert not is_read(received, tmp_path / NAME)
    tampered(tmp_path / NAME)
    assert is_read(received, tmp_path / NAME)
