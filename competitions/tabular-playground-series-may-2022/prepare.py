"""Rows are split at random and numbered anew, training rows first."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import read_csv, split_rows, write_csv

TEST_ROWS = 100_000
TEST_PART = 9  # one row of so many, where there are fewer rows than Kaggle's 900 000


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a ninth of the rows."""
    table = read_csv(raw / "train.csv", needs=["id", "target"])
    train, test = split_rows(table, min(TEST_ROWS, len(table) // TEST_PART))
    train = train.assign(id=range(len(train)))
    test = test.assign(id=range(len(train), len(table)))
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="target"), public / "test.csv")
    write_csv(test[["id"]].assign(target=0.5), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
    write_csv(test[["id", "target"]], private / "gold_submission.csv")
