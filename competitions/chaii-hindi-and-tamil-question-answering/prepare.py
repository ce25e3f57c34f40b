"""Questions are split at random, also those about the same article."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import read_csv, split_rows, write_csv

COLUMNS = ["id", "context", "question", "answer_text", "answer_start", "language"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the questions."""
    train, test = split_rows(read_csv(raw / "train.csv", needs=COLUMNS), 0.1)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns=["answer_text", "answer_start"]), public / "test.csv")
    answers = test[["id"]].assign(PredictionString=test["answer_text"])
    write_csv(answers.assign(PredictionString="dummy text"), public / "sample_submission.csv")
    write_csv(answers, private / "test.csv")
