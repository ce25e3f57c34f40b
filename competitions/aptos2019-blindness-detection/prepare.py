"""Photographs of retinas are split at random with their grades."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import link_named, read_csv, split_rows, write_csv


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the photographs."""
    train, test = split_rows(read_csv(raw / "train.csv", needs=["id_code", "diagnosis"]), 0.1)
    write_csv(train, public / "train.csv")
    write_csv(test[["id_code"]], public / "test.csv")
    write_csv(test[["id_code"]].assign(diagnosis=0), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
    for name, part in (("train_images", train), ("test_images", test)):
        link_named(part["id_code"], raw / "train_images", public / name, ".png")
