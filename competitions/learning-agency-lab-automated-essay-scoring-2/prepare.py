"""Essays are split at random with their scores; the sample has random scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pytest_mlebench.preparing import read_csv, split_rows, write_csv


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the essays."""
    table = read_csv(raw / "train.csv", needs=["essay_id", "full_text", "score"])
    train, test = split_rows(table, 0.1)
    write_csv(train, public / "train.csv")
    write_csv(test[["essay_id", "full_text"]], public / "test.csv")
    scores = np.random.RandomState(42).randint(1, 7, size=len(test))
    write_csv(test[["essay_id"]].assign(score=scores), public / "sample_submission.csv")
    write_csv(test, private / "answers.csv")
