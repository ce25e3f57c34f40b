"""Subjects are split at random; the folder of a subject is handed on whole."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import link_tree, read_csv, split_rows, write_csv

ID, TARGET = "BraTS21ID", "MGMT_value"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the subjects."""
    # as text, because the numbers have leading zeros, in the names of folders too
    labels = read_csv(raw / "train_labels.csv", needs=[ID, TARGET], dtype={ID: str, TARGET: int})
    train, test = split_rows(labels, 0.1)
    write_csv(train, public / "train_labels.csv")
    write_csv(test.assign(**{TARGET: 0.5}), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
    for name, part in (("train", train), ("test", test)):
        for subject in part[ID]:
            link_tree(raw / "train" / subject, public / name / subject)
