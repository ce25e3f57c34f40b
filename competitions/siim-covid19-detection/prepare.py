"""Studies are split at random, their images with them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.preparing import link_tree, read_csv, split_rows, write_csv

STUDIES, IMAGES = "train_study_level.csv", "train_image_level.csv"
CLASSES = {
    "Negative for Pneumonia": "negative",
    "Typical Appearance": "typical",
    "Indeterminate Appearance": "indeterminate",
    "Atypical Appearance": "atypical",
}
WHOLE = "1 0 0 1 1"  # a sure prediction with the box that stands for no box


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the studies."""
    studies = read_csv(raw / STUDIES, needs=["id", *CLASSES])
    images = read_csv(raw / IMAGES, needs=["id", "label", "StudyInstanceUID"])
    train, test = (part.sort_values("id") for part in split_rows(studies, 0.1))
    train_images, test_images = (
        images[(images["StudyInstanceUID"] + "_study").isin(part["id"])].sort_values("id")
        for part in (train, test)
    )
    for part, folder in ((train, "train"), (test, "test")):
        for study in part["id"].str.removesuffix("_study"):
            link_tree(raw / "train" / study, public / folder / study)
    write_csv(train, public / STUDIES)
    write_csv(train_images, public / IMAGES)
    found = test[list(CLASSES)].to_numpy().argmax(axis=1)
    names = [list(CLASSES.values())[column] for column in found]
    answers = pd.concat(
        [
            pd.DataFrame({"id": test["id"], "PredictionString": [f"{n} {WHOLE}" for n in names]}),
            test_images[["id", "label"]].rename(columns={"label": "PredictionString"}),
        ]
    )
    write_csv(answers, private / "test.csv")
    is_study = answers["id"].isin(test["id"])
    guesses = is_study.map({True: f"negative {WHOLE}", False: f"none {WHOLE}"})
    write_csv(answers.assign(PredictionString=guesses), public / "sample_submission.csv")
