"""TFRecord files are split at random, and the pictures with the files that hold them."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import (
    link,
    link_all,
    link_named,
    list_files,
    read_csv,
    read_texts,
    split_list,
    write_csv,
)

HEALTHY = 4
LABELS = "label_num_to_disease_map.json"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the TFRecord files."""
    table = read_csv(raw / "train.csv", needs=["image_id", "label"])
    train_records, test_records = split_list(list_files(raw / "train_tfrecords", "*.tfrec"), 0.1)
    _place_records(train_records, public, "train")
    _place_records(test_records, public, "test")
    in_test = {name for path in test_records for name in read_texts(path, "image_name")}
    held_out = table["image_id"].isin(in_test)
    train, test = table[~held_out], table[held_out]
    write_csv(train, public / "train.csv")
    write_csv(test[["image_id"]].assign(label=HEALTHY), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
    for name, part in (("train_images", train), ("test_images", test)):
        link_named(part["image_id"], raw / "train_images", public / name)
    link(raw / LABELS, public / LABELS)


def _place_records(records: list[Path], public: Path, part: str) -> None:
    """Number the files anew; the count of pictures after the dash stays."""
    folder = public / f"{part}_tfrecords"
    link_all(
        (path, folder / f"ld_{part}{number:02d}-{_count(path)}.tfrec")
        for number, path in enumerate(records)
    )


def _count(path: Path) -> str:
    _, *counts = path.stem.split("-")
    if not counts:
        raise PreparationError(f"{path} has no count of pictures in its name, such as '-1338'")
    return counts[0]
