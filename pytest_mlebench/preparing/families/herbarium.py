"""Herbarium sheets in the layout that the competitions of 2020 and 2021 share.

``train/metadata.json`` describes ``train/images/…``; the test images get new numbers and names.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.preparing.coco import (
    categories,
    read_coco,
    split_categories,
    with_pairs,
    write_coco,
)
from pytest_mlebench.preparing.files import link_all
from pytest_mlebench.preparing.tables import write_csv

TEST_SHARE = 0.2


def prepare_sheets(
    raw: Path, public: Path, private: Path, *, folder: str = "", encoding: str = "utf-8"
) -> None:
    """Hold out a fifth of the sheets of each species; *folder* is where train and test lie."""
    source, shown = raw / folder / "train", public / folder
    data = read_coco(source / "metadata.json", needs=["info", "licenses"], encoding=encoding)
    train, test = split_categories(data, TEST_SHARE)
    renamed = [
        {**image, "id": str(number), "file_name": f"images/{number // 1000:03d}/{number}.jpg"}
        for number, (_, image) in enumerate(test)
    ]
    public_facts = {"images": renamed, "info": data["info"], "licenses": data["licenses"]}
    write_coco(with_pairs(data, train), shown / "train" / "metadata.json")
    write_coco(public_facts, shown / "test" / "metadata.json")
    link_all(
        (source / image["file_name"], shown / "train" / image["file_name"]) for _, image in train
    )
    link_all(
        (source / image["file_name"], shown / "test" / new["file_name"])
        for (_, image), new in zip(test, renamed, strict=True)
    )
    answers = pd.DataFrame({"Id": range(len(test)), "Predicted": categories(test)})
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(Predicted=0), public / "sample_submission.csv")
