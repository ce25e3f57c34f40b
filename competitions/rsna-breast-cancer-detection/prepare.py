"""Patients are split at random; a prediction is for a breast, of which there are several images."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.preparing import link_named, read_csv, split_by, write_csv

TEST_COLUMNS = [
    "site_id",
    "patient_id",
    "image_id",
    "laterality",
    "view",
    "age",
    "implant",
    "machine_id",
    "prediction_id",
]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the patients."""
    images = read_csv(raw / "train.csv", needs=[*TEST_COLUMNS[:-1], "cancer"])
    train, test = split_by(images, "patient_id", 0.1, seed=42)
    test = test.assign(prediction_id=test["patient_id"].astype(str) + "_" + test["laterality"])
    answers = test.groupby("prediction_id")["cancer"].first().reset_index()
    write_csv(train, public / "train.csv")
    write_csv(test[TEST_COLUMNS], public / "test.csv")
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(cancer=train["cancer"].mean()), public / "sample_submission.csv")
    for part, table in (("train", train), ("test", test)):
        names = table["patient_id"].astype(str) + "/" + table["image_id"].astype(str)
        link_named(names, raw / "train_images", public / f"{part}_images", ".dcm")
