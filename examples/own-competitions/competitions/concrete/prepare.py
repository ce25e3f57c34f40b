"""Strength of concrete: a table, of which some rows are held out at random."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.preparing import read_csv, split_rows, write_csv

TABLE = "strength.csv"
ID = "id"
TARGETS = ["strength"]  # what is to be predicted
HELD_OUT = 0.2  # the share of rows of which only the organiser knows the answers


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Split the table: training rows whole, test rows without the targets, answers apart."""
    table = read_table(raw / TABLE)
    train, test = split_rows(table, HELD_OUT)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns=TARGETS), public / "test.csv")
    answers = answers_of(test)
    write_csv(answers, private / "answers.csv")
    write_csv(sample_of(answers), public / "sample_submission.csv")


def read_table(path: Path) -> pd.DataFrame:
    """Return the table with its ids."""
    table = read_csv(path, needs=TARGETS)
    table.insert(0, ID, range(1, len(table) + 1))
    return table


def answers_of(test: pd.DataFrame) -> pd.DataFrame:
    """Return what a perfect submission would be."""
    return test[[ID, *TARGETS]]


def sample_of(answers: pd.DataFrame) -> pd.DataFrame:
    """Return a valid submission that knows nothing."""
    names = [name for name in answers if name != ID]
    return answers.assign(**dict.fromkeys(names, 0.0))
