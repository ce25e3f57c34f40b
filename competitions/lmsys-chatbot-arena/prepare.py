"""Battles of two chatbots are split at random; the test part keeps the models to itself."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import read_csv, split_rows, write_csv

SHOWN = ["id", "prompt", "response_a", "response_b"]
OUTCOMES = ["winner_model_a", "winner_model_b", "winner_tie"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the battles."""
    train, test = split_rows(read_csv(raw / "train.csv", needs=[*SHOWN, *OUTCOMES]), 0.1)
    write_csv(train, public / "train.csv")
    write_csv(test[SHOWN], public / "test.csv")
    uniform = dict.fromkeys(OUTCOMES, 1 / len(OUTCOMES))
    write_csv(test[["id"]].assign(**uniform), public / "sample_submission.csv")
    write_csv(test, private / "answers.csv")
