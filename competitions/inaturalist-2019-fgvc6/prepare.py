"""Training pictures are split within their species and packed again; validation stays as it is."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pandas as pd

from pytest_mlebench.preparing import link, repack_tar, require, write_csv
from pytest_mlebench.preparing.coco import (
    categories,
    read_coco,
    split_categories,
    with_images,
    write_coco,
)

TEST_SHARE = 0.12
SAMPLE_CATEGORY = 654


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 12 % of the training pictures of each species."""
    link(require(raw / "val2019.json"), public / "val2019.json")
    data = read_coco(raw / "train2019.json", needs=["info", "licenses"])
    train, test = split_categories(data, TEST_SHARE)
    shown_train, shown_test = with_images(data, train), with_images(data, test)
    names = shown_test["images"].column("file_name")
    images = shown_test["images"].assign(file_name=[f"test2019/{_last(name)}" for name in names])
    write_coco(shown_train, public / "train2019.json")
    write_coco(
        {"images": images, "info": data["info"], "licenses": data["licenses"]},
        public / "test2019.json",
    )
    repack_tar(
        raw / "train_val2019.tar.gz",
        {
            public / "train_val2019.tar.gz": {
                name: name.removeprefix("train_val2019/")
                for name in shown_train["images"].column("file_name")
            },
            public / "test2019.tar.gz": {name: _last(name) for name in names},
        },
    )
    answers = pd.DataFrame({"id": images.column("id"), "predicted": categories(data, test)})
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(predicted=SAMPLE_CATEGORY), public / "kaggle_sample_submission.csv")


def _last(name: str) -> str:
    return PurePosixPath(name).name
