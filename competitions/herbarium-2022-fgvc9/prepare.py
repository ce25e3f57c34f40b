"""Sheets are split within their taxa, all of them at random; both parts are renumbered."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import pandas as pd

from pytest_mlebench.preparing import link_all, write_csv
from pytest_mlebench.preparing.coco import (
    Pair,
    Record,
    categories,
    read_coco,
    split_categories,
    with_pairs,
    write_coco,
)

TEST_SHARE = 0.2
SAMPLE_CATEGORY = 42


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a fifth of the sheets of each taxon."""
    data = read_coco(raw / "train_metadata.json")
    train, test = split_categories(data, TEST_SHARE, small=0)
    new_train = _renumbered(train)
    new_images = [
        {
            **image,
            "image_id": str(number),
            "file_name": f"{number // 1000:03d}/test-{number:06d}.jpg",
        }
        for number, (_, image) in enumerate(test)
    ]
    write_coco(with_pairs(data, new_train), public / "train_metadata.json")
    write_coco(new_images, public / "test_metadata.json")
    source = raw / "train_images"
    _place(source, train, public / "train_images", [image for _, image in new_train])
    _place(source, test, public / "test_images", new_images)
    answers = pd.DataFrame({"Id": range(len(test)), "Predicted": categories(test)})
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(Predicted=SAMPLE_CATEGORY), public / "sample_submission.csv")


def _renumbered(pairs: Iterable[Pair]) -> list[Pair]:
    """Number the images of each category from 1, in their names too."""
    renumbered: list[Pair] = []
    for category, group in groupby(pairs, key=lambda pair: pair[0]["category_id"]):
        folder = f"{category // 100:03d}/{category % 100:02d}"
        for number, (annotation, image) in enumerate(group, start=1):
            name = f"{category:05d}__{number:03d}"
            new_image = {**image, "image_id": name, "file_name": f"{folder}/{name}.jpg"}
            renumbered.append(({**annotation, "image_id": name}, new_image))
    return renumbered


def _place(source: Path, pairs: list[Pair], target: Path, renamed: list[Record]) -> None:
    link_all(
        (source / image["file_name"], target / new["file_name"])
        for (_, image), new in zip(pairs, renamed, strict=True)
    )
