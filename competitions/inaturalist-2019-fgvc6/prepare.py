"""Training pictures are split within their species and packed again; validation stays as it is."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pandas as pd

from pytest_mlebench.preparing import link, repack_tar, require, write_csv
from pytest_mlebench.preparing.coco import (
    categories,
    read_coco,
    split_categories,
    with_pairs,
    write_coco,
)

TEST_SHARE = 0.12
SAMPLE_CATEGORY = 654


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out 12 % of the training pictures of each species."""
    link(require(raw / "val2019.json"), public / "val2019.json")
    data = read_coco(raw / "train2019.json", needs=["info", "licenses"])
    train, test = split_categories(data, TEST_SHARE)
    names = [image["file_name"] for _, image in test]
    images = [{**image, "file_name": f"test2019/{_last(image['file_name'])}"} for _, image in test]
    write_coco(with_pairs(data, train), public / "train2019.json")
    write_coco(
        {"images": images, "info": data["info"], "licenses": data["licenses"]},
        public / "test2019.json",
    )
    repack_tar(
        raw / "train_val2019.tar.gz",
        {
            public / "train_val2019.tar.gz": {
                image["file_name"]: image["file_name"].removeprefix("train_val2019/")
                for _, image in train
            },
            public / "test2019.tar.gz": {name: _last(name) for name in names},
        },
    )
    answers = pd.DataFrame({"id": [image["id"] for image in images], "predicted": categories(test)})
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(predicted=SAMPLE_CATEGORY), public / "kaggle_sample_submission.csv")


def _last(name: str) -> str:
    return PurePosixPath(name).name
