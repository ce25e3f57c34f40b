"""Rows are split at random and numbered anew, training rows first."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import open_rows, split_indices, write_csv

TEST_ROWS = 100_000
TEST_PART = 9  # one row of so many, where there are fewer rows than Kaggle's 900 000


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a ninth of the rows."""
    with open_rows(raw / "train.csv", needs=["id", "target"], copied=False) as rows:
        train, held_out = split_indices(len(rows), min(TEST_ROWS, len(rows) // TEST_PART))
        rows.write(train, public / "train.csv", assign={"id": range(len(train))})
        test = rows.table(held_out).assign(id=range(len(train), len(rows)))
    write_csv(test.drop(columns="target"), public / "test.csv")
    write_csv(test[["id"]].assign(target=0.5), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
    write_csv(test[["id", "target"]], private / "gold_submission.csv")
