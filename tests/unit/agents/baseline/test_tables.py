"""The baseline agent finds tables and files under names that nobody has agreed on."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import py7zr
import pytest
from baseline_agent import Home, imported
from drawings import draw, encode
from sklearn.metrics import roc_auc_score


@pytest.fixture
def scripts() -> Iterator[tuple[ModuleType, ...]]:
    with imported("tables", "listing", "matching") as modules:
        yield modules


def write(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["sample_submission.csv", "sample_submission_2.csv"], "sample_submission.csv"),
        (["sampleSubmission.csv", "test.csv"], "sampleSubmission.csv"),
        (["test.csv", "randomPredictions.csv", "training.csv"], "randomPredictions.csv"),
        (["test_v2.txt", "train_v2.txt"], "test_v2.txt"),
        (["train.csv"], None),
    ],
)
def test_the_sample(
    scripts: tuple[ModuleType, ...], tmp_path: Path, names: list[str], found: str | None
) -> None:
    write(tmp_path, dict.fromkeys(names, "id,y\n1,2\n"))
    source = scripts[0].find_sample([tmp_path])
    assert (source and source.file.name) == found


def test_ids_may_be_spelt_otherwise_and_an_index_is_no_target(
    scripts: tuple[ModuleType, ...], tmp_path: Path
) -> None:
    write(
        tmp_path,
        {
            "train.csv": "id,size,category_id\n007,1,5\n008,2,6\n",
            "test.csv": "size,id\n3,009\n",
            "labels.json": '{"0": "healthy"}',
        },
    )
    sample = pd.DataFrame({"Unnamed: 0": ["4"], "Id": ["009"], "Category": ["0"]})
    tables = scripts[0].read_tables([tmp_path], sample)
    assert tables.ids == ("Id",)
    assert tables.train["Id"].tolist() == ["007", "008"]
    assert tables.test["Id"].tolist() == ["009"]


def test_tables_with_the_same_columns_are_stacked_unless_they_are_elsewhere(
    scripts: tuple[ModuleType, ...], tmp_path: Path
) -> None:
    write(
        tmp_path,
        {
            "train_noisy.csv": "id,y\n1,2\n",
            "train_curated.csv": "id,y\n2,3\n",
            "old/train_labels_old.csv": "id,y\n3,4\n",
            "old/test_labels_old.csv": "id,y\n4,5\n",
        },
    )
    tables = scripts[0].read_tables([tmp_path], pd.DataFrame({"id": ["9"], "y": ["0"]}))
    assert sorted(tables.train["id"]) == ["1", "2"]
    assert tables.test["id"].tolist() == ["9"]


def test_a_table_that_is_there_twice_is_read_once(
    scripts: tuple[ModuleType, ...], tmp_path: Path
) -> None:
    write(tmp_path, {"train.csv": "id,y\n1,2\n2,3\n"})
    with zipfile.ZipFile(tmp_path / "train.zip", "w") as archive:
        archive.writestr("train.csv", "id,y\n1,2\n2,3\n")
    tables = scripts[0].read_tables([tmp_path], pd.DataFrame({"id": ["9"], "y": ["0"]}))
    assert tables.train["id"].tolist() == ["1", "2"]


def matched(
    scripts: tuple[ModuleType, ...], folder: Path, train: list[str], test: list[str]
) -> tuple[list[str], list[str]]:
    tables, listing, matching = scripts
    found = matching.match_files(
        tables.Tables(
            sample=pd.DataFrame({"id": test}),
            train=pd.DataFrame({"id": train, "y": 1}),
            test=pd.DataFrame({"id": test}),
            ids=("id",),
        ),
        listing.list_media([folder]),
    )
    return tuple([file and file.path for file in files] for files in (found.train, found.test))


def test_the_same_names_are_other_files_for_training_and_testing(
    scripts: tuple[ModuleType, ...], tmp_path: Path
) -> None:
    names = [f"{split}/{number}.jpg" for split in ("train", "test") for number in (1, 2)]
    write(tmp_path, dict.fromkeys([*names, "train/1.txt"], ""))
    assert matched(scripts, tmp_path, ["2", "3"], ["1.jpg", "2.jpg"]) == (
        ["train/2.jpg", None],
        ["test/1.jpg", "test/2.jpg"],
    )


def test_of_two_folders_the_one_that_tests_have_too(
    scripts: tuple[ModuleType, ...], tmp_path: Path
) -> None:
    write(tmp_path, dict.fromkeys(["train/a/1.png", "train/b/1.png", "test/b/2.png"], ""))
    assert matched(scripts, tmp_path, ["1"], ["2"]) == (["train/b/1.png"], ["test/b/2.png"])


def test_an_archive_beside_its_folder_is_not_read_again(
    scripts: tuple[ModuleType, ...], tmp_path: Path
) -> None:
    write(tmp_path, {"train/1.png": ""})
    for name in ("train", "test"):
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            archive.writestr("1.png", "")
            archive.writestr("__MACOSX/._1.png", "")
            archive.writestr("table.csv", "")
    (tmp_path / "broken.zip").write_text("no archive")
    files = scripts[1].list_media([tmp_path])
    assert [(file.root.name, file.path) for file in files] == [
        ("test.zip", "1.png"),
        (tmp_path.name, "train/1.png"),
    ]


def test_a_file_of_many_bytes_is_not_read(
    scripts: tuple[ModuleType, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"train/1.png": "content"})
    (file,) = scripts[1].list_media([tmp_path])
    assert file.read() == b"content"
    monkeypatch.setattr(scripts[1], "MAX_FILE_BYTES", 6)
    with pytest.raises(ValueError, match=r"train/1\.png has 7 bytes"):
        file.read()


def write_7z(file: Path, contents: dict[str, bytes]) -> None:
    with py7zr.SevenZipFile(file, "w") as archive:
        for name, content in contents.items():
            archive.writef(io.BytesIO(content), name)


def test_everything_in_archives_of_the_7z_format(home: Home) -> None:
    random = np.random.default_rng(0)
    kinds = random.permutation([0, 1] * 50)
    pictures = [encode(draw(("rings", "stripes")[kind], random)) for kind in kinds]
    table = pd.DataFrame({"id": [*range(60), *range(40)], "invasive": kinds})
    train = {f"train/{i}.png": pictures[i] for i in range(60)}
    write_7z(home.data / "train.7z", train)
    write_7z(home.data / "test.7z", {f"{i}.png": pictures[60 + i] for i in range(40)})
    write_7z(home.data / "train_labels.csv.7z", {"train_labels.csv": _csv(table[:60])})
    sample = table[60:][["id"]].assign(invasive=0.5)
    write_7z(home.data / "sample_submission.csv.7z", {"sample_submission.csv": _csv(sample)})
    home.run()
    said = home.submission().loc[sample["id"].astype(str), "invasive"]
    assert roc_auc_score(kinds[60:], said) > 0.9


def test_without_py7zr_the_agent_names_what_it_needs(home: Home, tmp_path: Path) -> None:
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "py7zr.py").write_text("raise ImportError('none here')\n")
    home.write("sample_submission.csv", pd.DataFrame({"id": [1], "y": [0]}))
    write_7z(home.data / "train.7z", {"train.csv": b"id,y\n1,2\n"})
    log = home.run(PYTHONPATH=str(tmp_path / "without"))
    assert "train.7z needs py7zr: pip install 'pytest-mlebench[competitions]'" in log
    assert home.submission().loc["1", "y"] == 0


def _csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False).encode()
