"""The diabetes data that come with scikit-learn, split at random."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import read_csv, split_rows, write_csv


def generate(raw: Path) -> None:
    """Write the bundled data."""
    from sklearn.datasets import load_diabetes

    table = load_diabetes(as_frame=True, scaled=False).frame.rename(
        columns={"target": "progression"}
    )
    table.insert(0, "id", range(1, len(table) + 1))
    write_csv(table, raw / "patients.csv")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out two fifths of the patients."""
    train, test = split_rows(read_csv(raw / "patients.csv", needs=["id", "progression"]), 0.4)
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="progression"), public / "test.csv")
    write_csv(test[["id", "progression"]], private / "answers.csv")
    write_csv(test[["id"]].assign(progression=150.0), public / "sample_submission.csv")
