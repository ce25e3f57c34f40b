"""Sentences are split at random; the answers are one-hot."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import one_hot, read_csv, split_rows, unpacked, write_csv

# the shares of the three authors among Kaggle's sentences
PRIOR = {"EAP": 0.403493538995863, "HPL": 0.287808366106543, "MWS": 0.308698094897594}


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the sentences."""
    with unpacked(raw / "train.zip", near=public) as folder:
        table = read_csv(folder / "train.csv", needs=["id", "text", "author"])
    train, test = split_rows(table, 0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="author"), public / "test.csv")
    write_csv(test[["id"]].assign(**PRIOR), public / "sample_submission.csv")
    write_csv(test[["id"]].join(one_hot(test["author"], list(PRIOR))), private / "test.csv")
