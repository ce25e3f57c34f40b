"""Photographs of leaves are split at random."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import link_all, read_csv, split_rows, write_csv


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a fifth of the photographs."""
    table = read_csv(raw / "train.csv", needs=["image", "labels"])
    train, test = split_rows(table, 0.2)
    for folder, part in (("train_images", train), ("test_images", test)):
        link_all((raw / "train_images" / name, public / folder / name) for name in part["image"])
    write_csv(train, public / "train.csv")
    write_csv(test.assign(labels="healthy"), public / "sample_submission.csv")
    write_csv(test, private / "answers.csv")
