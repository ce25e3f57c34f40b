"""Three of fifteen kidney images are held out at random, with the sizes of their masks."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import link_named, read_csv, split_rows, write_csv

INFORMATION = "HuBMAP-20-dataset_information.csv"
TRAIN_IMAGES, TEST_IMAGES = 12, 3
ENDINGS = (".tiff", ".json", "-anatomical-structure.json")


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out three images."""
    table = read_csv(raw / "train.csv", needs=["id", "encoding"])
    if len(table) < TRAIN_IMAGES + TEST_IMAGES:
        raise PreparationError(
            f"{raw / 'train.csv'} has {len(table)} rows, expected {TRAIN_IMAGES + TEST_IMAGES}"
        )
    train, test = split_rows(table, TEST_IMAGES)
    train = train.head(TRAIN_IMAGES)
    information = read_csv(raw / INFORMATION, needs=["image_file", "width_pixels", "height_pixels"])
    images = information["image_file"].str.removesuffix(".tiff")
    sizes = information.assign(id=images)[["id", "width_pixels", "height_pixels"]]
    answers = test.merge(sizes, on="id")
    for part, folder in ((train, "train"), (test, "test")):
        for ending in ENDINGS:
            link_named(part["id"], raw / "train", public / folder, ending)
    write_csv(train, public / "train.csv")
    write_csv(information[images.isin(table["id"])], public / INFORMATION)
    sample = pd.DataFrame({"id": answers["id"], "predicted": ""})
    write_csv(sample, public / "sample_submission.csv")
    write_csv(sample, public / "test" / "sample_submission.csv")
    write_csv(answers, private / "test.csv")
    gold = answers[["id", "encoding"]].rename(columns={"encoding": "predicted"})
    write_csv(gold, private / "gold_submission.csv")
