"""Photographs of hotel rooms are split at random; test images do not show their chain."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import link_all, read_csv, split_rows, write_csv

LISTED_TWICE = "ce27d36c9147cc19.jpg"
SAMPLE = "36363 53586 18807 64314 60181"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the photographs."""
    table = read_csv(raw / "train.csv", needs=["image", "chain", "hotel_id", "timestamp"])
    train, test = split_rows(table[table["image"] != LISTED_TWICE], 0.1)
    source = raw / "train_images"
    link_all(
        (source / str(chain) / image, public / "train_images" / str(chain) / image)
        for chain, image in zip(train["chain"], train["image"], strict=True)
    )
    link_all(
        (source / str(chain) / image, public / "test_images" / image)
        for chain, image in zip(test["chain"], test["image"], strict=True)
    )
    write_csv(train, public / "train.csv")
    write_csv(test[["image"]].assign(hotel_id=SAMPLE), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
