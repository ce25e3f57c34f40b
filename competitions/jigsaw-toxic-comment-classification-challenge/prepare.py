"""Kaggle's own split: the labels of its test comments are known, -1 where not scored."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.preparing import read_csv, unpacked, write_csv

CLASSES = ["toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Write the four tables anew, without a split."""
    train = _read(raw / "train.csv.zip", public, needs=["id", "comment_text", *CLASSES])
    test = _read(raw / "test.csv.zip", public, needs=["id", "comment_text"])
    labels = _read(raw / "test_labels.csv.zip", public, needs=["id", *CLASSES])
    sample = _read(raw / "sample_submission.csv.zip", public, needs=["id", *CLASSES])
    write_csv(train, public / "train.csv")
    write_csv(test, public / "test.csv")
    write_csv(sample.assign(**dict.fromkeys(CLASSES, 0.5)), public / "sample_submission.csv")
    write_csv(labels, private / "test.csv")


def _read(archive: Path, near: Path, needs: list[str]) -> pd.DataFrame:
    """Return the table that is alone in an archive, under its name without ``.zip``."""
    with unpacked(archive, near=near) as folder:
        return read_csv(folder / archive.stem, needs=needs)
