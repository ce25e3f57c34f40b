"""Kaggle's own split: it has published the labels of its test comments."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import link, read_csv, write_csv

COLUMNS = ["Insult", "Date", "Comment"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hand on Kaggle's files; of the test comments without their labels."""
    read_csv(raw / "train.csv", needs=COLUMNS)
    test = read_csv(raw / "test_with_solutions.csv", needs=COLUMNS)[COLUMNS]
    link(raw / "train.csv", public / "train.csv")
    link(raw / "test_with_solutions.csv", private / "test.csv")
    write_csv(test, private / "gold_submission.csv")
    write_csv(test.drop(columns="Insult"), public / "test.csv")
    write_csv(test.assign(Insult=0), public / "sample_submission_null.csv")
