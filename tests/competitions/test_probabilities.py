"""What competitions of a single probability make of their archives, and say of broken raw trees."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import py7zr
import pytest
from golden_pack import Pack

from pytest_mlebench import load_competition
from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import extract, write_7z, write_zip

BIRDS = "mlsp-2013-birds"
HYDRANGEAS = "invasive-species-monitoring"
ICEBERGS = "statoil-iceberg-classifier-challenge"
PIZZA = "random-acts-of-pizza"
WHALES = "the-icml-2013-whale-challenge-right-whale-redux"

Damage = Callable[[Path], object]


def _repack(raw: Path, archive: str, member: str, change: Callable[[str], str]) -> None:
    """Change the text of one member of an archive."""
    folder = raw.parent / "repacked"
    extract(raw / archive, folder)
    (folder / member).write_text(change((folder / member).read_text()))
    write = write_7z if archive.endswith(".7z") else write_zip
    write(raw / archive, folder)


def _icebergs(member: str, text: str) -> Damage:
    return lambda raw: _repack(raw, f"{member}.7z", f"data/processed/{member}", lambda _: text)


def _birds(member: str, change: Callable[[str], str]) -> Damage:
    place = f"mlsp_contest_dataset/essential_data/{member}"
    return lambda raw: _repack(raw, "mlsp_contest_dataset.zip", place, change)


def _two_days(raw: Path) -> None:
    with zipfile.ZipFile(raw / "train2.zip", "w") as archive:
        for name in ("20090328_000000_1s1ms_TRAIN0_0.aif", "20090329_000000_1s1ms_TRAIN1_1.aif"):
            archive.writestr(f"train2/{name}", b"")


@pytest.mark.parametrize(
    ("competition_id", "damage", "message"),
    [
        (ICEBERGS, _icebergs("test.json", "[1, 2]"), r"test.json is not a list of records"),
        (ICEBERGS, _icebergs("test.json", "[]"), r"test.json cannot be read: Expecting value"),
        (ICEBERGS, _icebergs("train.json", '[{"id": 1}]'), r"train.json: entry 0 has no 'is_ice"),
        (
            BIRDS,
            _birds("CVfolds_2.txt", lambda text: text.replace(",0", ",1")),
            r"CVfolds_2.txt has no recordings in fold 0",
        ),
        (
            BIRDS,
            _birds("rec_labels_test_hidden.txt", lambda text: text[: len(text) // 2]),
            r"rec_labels_test_hidden.txt lacks recordings of fold 0",
        ),
        (
            BIRDS,
            _birds("rec_labels_test_hidden.txt", lambda text: text.replace("\n", ",19\n")),
            r"rec_labels_test_hidden.txt has '19', expected a species below 19",
        ),
        (
            PIZZA,
            lambda raw: (raw / "test.json").write_text("[]"),
            r"test.json has no requests",
        ),
        (WHALES, _two_days, r"train2.zip has clips of 2 days, expected 4"),
    ],
)
def test_a_broken_raw_tree_is_one_error_that_names_the_file(
    competition_id: str, damage: Damage, message: str, tmp_path: Path
) -> None:
    raw = Pack(competition_id).unpack("raw", tmp_path)
    damage(raw)
    with pytest.raises(PreparationError, match=f"^{competition_id}: .*{message}"):
        load_competition(competition_id).prepare(raw, tmp_path / "public", tmp_path / "private")
    assert not (tmp_path / "public").exists()


def test_the_photographs_of_hydrangeas_are_in_the_archive_of_their_part(tmp_path: Path) -> None:
    raw = Pack(HYDRANGEAS).unpack("raw", tmp_path)
    public, private = tmp_path / "public", tmp_path / "private"
    load_competition(HYDRANGEAS).prepare(raw, public, private)
    extract(raw / "train.7z", tmp_path / "before")
    train = pd.read_csv(public / "train_labels.csv.zip")["name"]
    test = pd.read_csv(private / "answers.csv")["name"]
    for part, names in (("train", train), ("test", test)):
        extract(public / f"{part}.7z", tmp_path / "after")
        photos = {path.name: path.read_bytes() for path in (tmp_path / "after" / part).iterdir()}
        before = {f"{n}.jpg": (tmp_path / f"before/train/{n}.jpg").read_bytes() for n in names}
        assert photos == before


def test_only_the_first_unlabelled_radar_image_is_read(tmp_path: Path) -> None:
    raw = Pack(ICEBERGS).unpack("raw", tmp_path)
    _icebergs("test.json", '[\n {"inc_angle": 1.5, "id": "a"}, {"cut off')(raw)
    load_competition(ICEBERGS).prepare(raw, tmp_path / "public", tmp_path / "private")
    with py7zr.SevenZipFile(tmp_path / "public" / "test.json.7z") as archive:
        archive.extractall(tmp_path)
    records = json.loads((tmp_path / "test.json").read_text())
    assert {tuple(record) for record in records} == {("inc_angle", "id")}
