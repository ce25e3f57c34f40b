"""Pairs of phrases are split at random."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import read_csv, split_rows, write_csv

COLUMNS = ["id", "anchor", "target", "context", "score"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the pairs."""
    train, test = split_rows(read_csv(raw / "train.csv", needs=COLUMNS), 0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="score"), public / "test.csv")
    write_csv(test[["id"]].assign(score=0), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
