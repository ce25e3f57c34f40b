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
    with_images,
    write_coco,
)
from pytest_mlebench.preparing.files import link_named, link_renamed
from pytest_mlebench.preparing.tables import write_csv

TEST_SHARE = 0.2


def prepare_sheets(
    raw: Path, public: Path, private: Path, *, folder: str = "", encoding: str = "utf-8"
) -> None:
    """Hold out a fifth of the sheets of each species; *folder* is where train and test lie."""
    source, shown = raw / folder / "train", public / folder
    data = read_coco(source / "metadata.json", needs=["info", "licenses"], encoding=encoding)
    train, test = split_categories(data, TEST_SHARE)
    shown_train, shown_test = with_images(data, train), with_images(data, test)
    names = [f"images/{number // 1000:03d}/{number}.jpg" for number in range(len(test))]
    renamed = shown_test["images"].assign(id=[*map(str, range(len(test)))], file_name=names)
    public_facts = {"images": renamed, "info": data["info"], "licenses": data["licenses"]}
    write_coco(shown_train, shown / "train" / "metadata.json")
    write_coco(public_facts, shown / "test" / "metadata.json")
    link_named(shown_train["images"].column("file_name"), source, shown / "train")
    old_names = shown_test["images"].column("file_name")
    link_renamed(zip(old_names, names, strict=True), source, shown / "test")
    answers = pd.DataFrame({"Id": range(len(test)), "Predicted": categories(data, test)})
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(Predicted=0), public / "sample_submission.csv")
