"""The breast-cancer data that come with scikit-learn, split at random and made harder by noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from pytest_mlebench.preparing import read_csv, split_rows, write_csv

NOISE = 0.9  # standard deviations added to each measurement: the clean data are too easy


def generate(raw: Path) -> None:
    """Write the bundled data with measurement noise."""
    from sklearn.datasets import load_breast_cancer

    cancer = load_breast_cancer()
    noise = np.random.RandomState(7).standard_normal(cancer.data.shape)
    values = (cancer.data + NOISE * cancer.data.std(axis=0) * noise).round(4)
    table = pd.DataFrame(values, columns=[name.replace(" ", "_") for name in cancer.feature_names])
    table.insert(0, "id", [f"case-{k:04d}" for k in range(len(table))])
    write_csv(table.assign(malignant=1 - cancer.target), raw / "cases.csv")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out two fifths of the cases."""
    train, test = split_rows(read_csv(raw / "cases.csv", needs=["id", "malignant"]), 0.4)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="malignant"), public / "test.csv")
    write_csv(test[["id", "malignant"]], private / "answers.csv")
    write_csv(test[["id"]].assign(malignant=0.5), public / "sample_submission.csv")
