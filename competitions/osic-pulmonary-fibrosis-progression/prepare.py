"""Patients are split at random; of a test patient only the first visit is public."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.preparing import link_tree, read_csv, require, split_groups, write_csv

VISITS = ["Patient", "Weeks", "FVC", "Percent", "Age", "Sex", "SmokingStatus"]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the patients and ask for every week of them."""
    visits = read_csv(raw / "train.csv", needs=VISITS, dtype={"Weeks": "int64"})
    train, test = split_groups(visits, "Patient", 0.1)
    first = test.sort_values("Weeks", kind="stable").groupby("Patient").first().reset_index()
    weeks = _every_week(test)
    write_csv(train, public / "train.csv")
    write_csv(first, public / "test.csv")
    write_csv(weeks, private / "test.csv")
    sample = weeks[["Patient_Week"]].assign(FVC=2000, Confidence=100)
    write_csv(sample, public / "sample_submission.csv")
    for name, part in (("train", train), ("test", test)):
        for patient in part["Patient"].unique():
            link_tree(require(raw / "train" / patient), public / name / patient)


def _every_week(test: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each patient and week between the first and the last week of anyone."""
    weeks = range(test["Weeks"].min(), test["Weeks"].max() + 1)
    grid = [(patient, week) for patient in test["Patient"].unique() for week in weeks]
    table = pd.DataFrame(grid, columns=["Patient", "Weeks"])
    table = table.merge(test, on=["Patient", "Weeks"], how="left")
    names = table["Patient"] + "_" + table["Weeks"].astype(str)
    return table.assign(Patient_Week=names, Confidence=100)
