"""Pictures are split by camera location and packed again, one archive a part."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.preparing import read_csv, split_by, write_csv, write_zip, zip_members

TEST_SHARE = 0.1
SEED = 8


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a tenth of the locations with all their pictures."""
    table = read_csv(raw / "train.csv", needs=["id", "location", "category_id"])
    train, test = split_by(table, "location", TEST_SHARE, SEED)
    pictures = zip_members(raw / "train_images.zip")
    for name, part in (("train_images.zip", train), ("test_images.zip", test)):
        files = [f"{picture}.jpg" for picture in part["id"]]
        write_zip(public / name, {file: pictures[file] for file in files})
    write_csv(train, public / "train.csv")
    write_csv(test.drop(columns="category_id"), public / "test.csv")
    answers = pd.DataFrame({"Id": test["id"], "Category": test["category_id"]})
    write_csv(answers.assign(Category=0), public / "sample_submission.csv", index=True)
    write_csv(test, private / "test.csv")
    write_csv(answers, private / "answers.csv")
