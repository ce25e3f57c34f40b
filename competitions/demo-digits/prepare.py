"""The digits that come with scikit-learn, with noise, split at random."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from pytest_mlebench.preparing import read_csv, split_rows, write_csv

NOISE = 3.0  # of 16 grey levels


def generate(raw: Path) -> None:
    """Write the bundled pictures, a pixel a column, with a noisy scanner's marks."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    noise = np.random.RandomState(11).standard_normal(digits.data.shape)
    pixels = np.clip(digits.data + NOISE * noise, 0, 16).round().astype(int)
    names = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
    table = pd.DataFrame(pixels, columns=names)
    table.insert(0, "id", range(len(table)))
    write_csv(table.assign(digit=digits.target), raw / "digits.csv")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a third of the pictures."""
    train, test = split_rows(read_csv(raw / "digits.csv", needs=["id", "digit"]), 1 / 3)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="digit"), public / "test.csv")
    write_csv(test[["id", "digit"]], private / "answers.csv")
    write_csv(test[["id"]].assign(digit=0), public / "sample_submission.csv")
