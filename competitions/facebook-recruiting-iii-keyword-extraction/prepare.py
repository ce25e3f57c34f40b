"""Questions are split at random, also those that occur twice."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import read_csv, split_rows, unpacked, write_csv

COLUMNS = ["Id", "Title", "Body", "Tags"]
COMMON = "javascript c# python php java"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the questions."""
    with unpacked(raw / "Train.zip", near=public) as folder:
        table = read_csv(folder / "Train.csv", needs=COLUMNS, dtype={"Id": str, "Tags": str})
    train, test = split_rows(table, 0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="Tags"), public / "test.csv")
    write_csv(test.assign(Tags=COMMON), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
