"""Labelled pictures are split at random and packed again, one archive a part."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import read_csv, split_rows, write_csv, write_zip, zip_members


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 19 % of the pictures."""
    train, test = split_rows(read_csv(raw / "train.csv", needs=["id", "has_cactus"]), 0.19)
    pictures = zip_members(raw / "train.zip")
    for name, part in (("train", train), ("test", test)):
        chosen = {picture: pictures[f"train/{picture}"] for picture in part["id"]}
        write_zip(public / f"{name}.zip", chosen)
    write_csv(train, public / "train.csv")
    write_csv(test.assign(has_cactus=0.5), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
