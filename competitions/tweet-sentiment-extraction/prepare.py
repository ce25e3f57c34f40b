"""Tweets are split at random."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import read_csv, split_rows, write_csv

COLUMNS = ["textID", "text", "selected_text", "sentiment"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the tweets."""
    train, test = split_rows(read_csv(raw / "train.csv", needs=COLUMNS), 0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="selected_text"), public / "test.csv")
    write_csv(test[["textID"]].assign(selected_text=""), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
