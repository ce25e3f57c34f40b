"""X-rays are split at random, not by patient; lines are drawn for training images only."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.competition import read_competition
from pytest_mlebench.preparing import link_named, read_csv, split_rows, write_csv

ID = "StudyInstanceUID"


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the x-rays; nine of the eleven labels are asked for."""
    asked = read_competition(Path(__file__).parent).rules.targets
    train, test = split_rows(read_csv(raw / "train.csv", needs=[ID, *asked]), 0.1)
    lines = read_csv(raw / "train_annotations.csv", needs=[ID])
    write_csv(train, public / "train.csv")
    write_csv(lines[lines[ID].isin(train[ID])], public / "train_annotations.csv")
    write_csv(test[[ID]].assign(**dict.fromkeys(asked, 0)), public / "sample_submission.csv")
    write_csv(test, private / "test.csv")
    for name, part in (("train", train), ("test", test)):
        link_named(part[ID], raw / "train", public / name, ".jpg")
