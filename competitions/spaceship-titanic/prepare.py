"""Passengers are split at random, not by travel group."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import read_csv, split_rows, write_csv


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the passengers."""
    train, test = split_rows(read_csv(raw / "train.csv", needs=["PassengerId", "Transported"]), 0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="Transported"), public / "test.csv")
    write_csv(test[["PassengerId"]].assign(Transported=False), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
