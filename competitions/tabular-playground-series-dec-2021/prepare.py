"""Patches of forest are split at random; ids stay as they are."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import read_csv, split_rows, write_csv


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the patches."""
    train, test = split_rows(read_csv(raw / "train.csv", needs=["Id", "Cover_Type"]), 0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="Cover_Type"), public / "test.csv")
    write_csv(test[["Id"]].assign(Cover_Type=2), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
