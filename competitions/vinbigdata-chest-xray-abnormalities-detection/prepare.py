"""X-ray images are split at random, with all findings of all their readers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.preparing import link_named, read_csv, reading, split_list, write_csv

CORNERS = ["x_min", "y_min", "x_max", "y_max"]
NO_FINDING = 14


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the images."""
    table = read_csv(
        raw / "train.csv", needs=["image_id", "class_id", "class_name", "rad_id", *CORNERS]
    )
    train, test = split_list(list(table["image_id"].unique()), 0.1)
    for images, folder in ((train, "train"), (test, "test")):
        link_named(images, raw / "train", public / folder, ".dicom")
    write_csv(table[table["image_id"].isin(train)], public / "train.csv")
    sample = pd.DataFrame({"image_id": test, "PredictionString": f"{NO_FINDING} 1 0 0 1 1"})
    write_csv(sample, public / "sample_submission.csv")
    with reading(raw / "train.csv"):
        answers = _answers(table[table["image_id"].isin(test)])
    write_csv(answers, private / "answers.csv")
    write_csv(_gold(answers), private / "gold_submission.csv")


def _answers(findings: pd.DataFrame) -> pd.DataFrame:
    """Return one box for each image and class: the first known value of each column."""
    answers = findings.groupby(["image_id", "class_id"], as_index=False).first()
    answers[CORNERS] = answers[CORNERS].astype(float)
    answers = answers.where(answers.notna(), 0)
    answers.loc[answers["class_id"] == NO_FINDING, ["x_max", "y_max"]] = 1.0
    return answers


def _gold(answers: pd.DataFrame) -> pd.DataFrame:
    boxes = answers[["class_id", *CORNERS]].astype(str)
    boxes.insert(1, "confidence", "1.0")
    texts = answers[["image_id"]].assign(PredictionString=boxes.agg(" ".join, axis=1))
    return texts.groupby("image_id", as_index=False)["PredictionString"].agg(" ".join)
