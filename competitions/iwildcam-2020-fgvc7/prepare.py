"""Pictures are split by camera location, until the test part has about the size it should have."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import (
    link,
    link_all,
    read_json,
    reading,
    require,
    split_list,
    write_csv,
    write_json,
)

TEST_SHARE = 0.22
CATEGORIES = 676  # the sample submission guesses below this number
TRAIN = "iwildcam2020_train_annotations.json"
TEST = "iwildcam2020_test_information.json"
BOXES = "iwildcam2020_megadetector_results.json"

Record = dict[str, Any]


def prepare(raw: Path, public: Path, private: Path) -> None:
    """Hold out whole locations."""
    known = _read(raw / TRAIN, annotations=["image_id", "category_id"], images=["id", "location"])
    original = _read(raw / TEST)
    link(require(raw / BOXES), public / BOXES)
    images = known["images"]
    places = _test_locations([image["location"] for image in images])
    held_out = {image["id"] for image in images if image["location"] in places}
    train, test = _parted(images, "id", held_out)
    ids = {image["id"] for image in images}
    labels = [label for label in known["annotations"] if label["image_id"] in ids]
    train_labels, test_labels = _parted(labels, "image_id", held_out)
    write_json({**known, "annotations": train_labels, "images": train}, public / TRAIN)
    write_json({"images": test, **original}, public / TEST)
    for folder, part in (("train", train), ("test", test)):
        names = [f"{image['id']}.jpg" for image in part]
        link_all((raw / "train" / name, public / folder / name) for name in names)
    answers = pd.DataFrame(
        {
            "Id": [label["image_id"] for label in test_labels],
            "Category": [label["category_id"] for label in test_labels],
        }
    )
    guesses = np.random.RandomState(0).randint(0, CATEGORIES, size=len(answers))
    write_csv(answers.assign(Category=guesses), public / "sample_submission.csv")
    write_csv(answers, private / "answers.csv")


def _read(path: Path, **needs: list[str]) -> Record:
    """Return what is published of a file, its lists as tables, in the order of publication."""
    data = read_json(path)
    keys = [*needs, "categories", "info"]
    for key in keys:
        if not isinstance(data, dict) or key not in data:
            raise PreparationError(f"{path} has no entry {key!r}")
    with reading(path):
        tables = {key: _table(data[key]) for key in keys if key != "info"}
    for key, columns in needs.items():
        for column in columns:
            if tables[key] and column not in tables[key][0]:
                raise PreparationError(f"{path}: the entries of {key!r} have no {column!r}")
    return {**tables, "info": data["info"]}


def _table(records: Sequence[Record]) -> list[Record]:
    """Give all records the same keys and each column one type of number, as a table would."""
    keys = list(dict.fromkeys(chain.from_iterable(records)))
    columns = [_column([record.get(key, math.nan) for record in records]) for key in keys]
    return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]


def _column(values: list[Any]) -> list[Any]:
    kinds = {type(value) for value in values}
    if not kinds <= {int, float, type(None)} or kinds in ({int}, {type(None)}):
        return values
    return [math.nan if value is None else float(value) for value in values]


def _test_locations(locations: list[Any]) -> set[Any]:
    """Draw locations, then move some of them to come close to the share wanted.

    The share is of the test images among all images and the test images once more.
    """
    sizes = Counter(locations)
    train, test = split_list(list(sizes), TEST_SHARE)
    count = sum(sizes[place] for place in test)

    def share() -> float:
        return count / (len(locations) + count)

    while share() < TEST_SHARE:
        test.append(train.pop())
        count += sizes[test[-1]]
    while share() > TEST_SHARE:
        train.append(test.pop())
        count -= sizes[train[-1]]
    return set(test)


def _parted(records: list[Record], key: str, held_out: set[Any]) -> tuple[list[Record], ...]:
    """Return the records of train and of test images."""
    return tuple(
        [record for record in records if (record[key] in held_out) is wanted]
        for wanted in (False, True)
    )
