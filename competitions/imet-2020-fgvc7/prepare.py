"""Pictures of works of art are split at random."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import link, link_all, read_csv, require, split_rows, write_csv


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 15 % of the pictures."""
    link(require(raw / "labels.csv"), public / "labels.csv")
    table = read_csv(raw / "train.csv", needs=["id", "attribute_ids"])
    train, test = split_rows(table, 0.15)
    for name, part in (("train", train), ("test", test)):
        pictures = [f"{picture}.png" for picture in part["id"]]
        link_all((raw / "train" / file, public / name / file) for file in pictures)
    write_csv(train, public / "train.csv")
    write_csv(test.assign(attribute_ids="0 1 2"), public / "sample_submission.csv")
    write_csv(test, private / "answers.csv")
