"""Sheets are split within their taxa, all of them at random; both parts are renumbered."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pytest_mlebench.preparing import link_renamed, write_csv
from pytest_mlebench.preparing.coco import (
    categories,
    read_coco,
    split_categories,
    with_images,
    write_coco,
)

TEST_SHARE = 0.2
SAMPLE_CATEGORY = 42


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out a fifth of the sheets of each taxon."""
    data = read_coco(raw / "train_metadata.json")
    train, test = split_categories(data, TEST_SHARE, small=0)
    shown_train, test_images = with_images(data, train), data["images"].take(test)
    ids, new_names = _numbered(pd.Series(categories(data, train)))
    old_names = shown_train["images"].column("file_name")
    renumbered = {
        "annotations": shown_train["annotations"].assign(image_id=ids),
        "images": shown_train["images"].assign(image_id=ids, file_name=new_names),
    }
    test_ids = [*map(str, range(len(test)))]
    test_names = [f"{n // 1000:03d}/test-{n:06d}.jpg" for n in range(len(test))]
    write_coco({**shown_train, **renumbered}, public / "train_metadata.json")
    write_coco(
        test_images.assign(image_id=test_ids, file_name=test_names), public / "test_metadata.json"
    )
    source = raw / "train_images"
    link_renamed(zip(old_names, new_names, strict=True), source, public / "train_images")
    pairs = zip(test_images.column("file_name"), test_names, strict=True)
    link_renamed(pairs, source, public / "test_images")
    answers = pd.DataFrame({"Id": range(len(test)), "Predicted": categories(data, test)})
    write_csv(answers, private / "answers.csv")
    write_csv(answers.assign(Predicted=SAMPLE_CATEGORY), public / "sample_submission.csv")


def _numbered(category: pd.Series[int]) -> tuple[list[str], list[str]]:
    """Return ids and files for images that come category after category, in each from 1."""
    numbers = category.groupby(category).cumcount() + 1
    pairs = list(zip(category.tolist(), numbers.tolist(), strict=True))
    ids = [f"{each:05d}__{number:03d}" for each, number in pairs]
    folders = (f"{each // 100:03d}/{each % 100:02d}" for each, _ in pairs)
    return ids, [f"{folder}/{id}.jpg" for folder, id in zip(folders, ids, strict=True)]
