"""Photos of rice leaves are split at random; test photos lose the folder of their class."""

from __future__ import annotations

import math
from pathlib import Path

from pytest_mlebench.preparing import link_all, link_named, read_csv, split_rows, write_csv

TRAIN_SHARE = 0.75


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a quarter of the photos, rounded up."""
    read_csv(raw / "sample_submission.csv", needs=["image_id", "label"])
    table = read_csv(raw / "train.csv", needs=["image_id", "label"])
    train, test = split_rows(table, len(table) - math.floor(TRAIN_SHARE * len(table)))
    write_csv(train, public / "train.csv")
    write_csv(test[["image_id"]].assign(label=""), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
    photos = raw / "train_images"
    link_named(train["label"] + "/" + train["image_id"], photos, public / "train_images")
    link_all(
        (photos / label / name, public / "test_images" / name)
        for name, label in zip(test["image_id"], test["label"], strict=True)
    )
