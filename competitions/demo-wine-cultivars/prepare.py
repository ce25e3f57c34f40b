"""The wine data that come with scikit-learn, split at random."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.preparing import one_hot, read_csv, split_rows, write_csv

CULTIVARS = ("barolo", "grignolino", "barbera")


def generate(raw: Path) -> None:
    """Write the bundled data."""
    from sklearn.datasets import load_wine

    wine = load_wine()
    table = pd.DataFrame(wine.data, columns=[name.replace("/", "_") for name in wine.feature_names])
    table.insert(0, "id", range(1, len(table) + 1))
    write_csv(table.assign(cultivar=[CULTIVARS[k] for k in wine.target]), raw / "wine.csv")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out two fifths of the wines."""
    table = read_csv(raw / "wine.csv", needs=["id", "cultivar"])
    train, test = split_rows(table, 0.4)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="cultivar"), public / "test.csv")
    answers = test[["id"]].join(one_hot(test["cultivar"], CULTIVARS))
    write_csv(answers, private / "answers.csv")
    sample = answers.assign(barolo=0.34, grignolino=0.33, barbera=0.33)
    write_csv(sample, public / "sample_submission.csv")
