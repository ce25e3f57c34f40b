"""Image collections described by one JSON file in the manner of COCO.

The k-th annotation belongs to the k-th image, and each image has one category. Images are split
within their categories, so that rare ones are on both sides.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import json_text
from pytest_mlebench.preparing.csv_source import Array
from pytest_mlebench.preparing.files import require
from pytest_mlebench.preparing.record_table import (
    INDENT,
    Irregular,
    RecordList,
    Records,
    RecordTable,
    indented,
    read_tables,
)
from pytest_mlebench.preparing.split import split_indices
from pytest_mlebench.preparing.tables import reading
from pytest_mlebench.preparing.written_sums import new_file

MIN_SPLIT_IMAGES = 5  # categories with fewer images are not split at random
KEYS = {"annotations": "category_id", "images": "file_name"}  # that every record must have

Collection = dict[str, Any]  # two lists of records, and the rest as JSON has it


def read_coco(path: Path, *, needs: Iterable[str] = (), encoding: str = "utf-8") -> Collection:
    """Read a collection, whose records must be paired and have what every split needs."""
    require(path)
    with reading(path):
        content = path.read_bytes()
        if encoding != "utf-8":
            content = content.decode(encoding).encode()
        try:
            data: Collection = read_tables(content, KEYS)
        except Irregular:
            data = _with_lists(path, json_text.loads(content))
    for name, key in KEYS.items():
        if (
            isinstance(data[name], RecordTable)
            and len(data[name])
            and key not in data[name].columns
        ):
            raise PreparationError(f"{path}: entry 0 of {name!r} has no {key!r}")
    counts = len(data["annotations"]), len(data["images"])
    if counts[0] != counts[1]:
        raise PreparationError(f"{path} has {counts[0]} annotations for {counts[1]} images")
    for key in needs:
        if key not in data:
            raise PreparationError(f"{path} has no entry {key!r}")
    _check_categories(path, data["annotations"])
    return data


def write_coco(data: Records | Mapping[str, Any], path: Path) -> None:
    """Write a collection, or a list of records, with sorted keys, indented."""
    with new_file(path) as file:
        file.writelines(_indented(data) if isinstance(data, Mapping) else data.indented(0))


def split_categories(
    data: Collection, test: float, *, small: int = MIN_SPLIT_IMAGES
) -> tuple[Array, Array]:
    """Return the numbers of the train images, category after category, and of the test, shuffled.

    A share *test* of each category is held out at random; of one with fewer than *small* images
    the last one is, and a single image stays in train.
    """
    train: list[int] = []
    held_out: list[int] = []
    for images in _by_category(data):
        kept, taken = _split_small(images) if len(images) < small else _split(images, test)
        train += kept.tolist()
        held_out += taken.tolist()
    random.Random(0).shuffle(held_out)
    return np.array(train, dtype=np.int64), np.array(held_out, dtype=np.int64)


def with_images(data: Collection, images: Array) -> Collection:
    """Return a collection that has some of the images and is otherwise the same."""
    return {**data, **{name: data[name].take(images) for name in KEYS}}


def categories(data: Collection, images: Array) -> Array:
    """Return the category of each of some images."""
    return np.asarray(data["annotations"].column("category_id"))[images]


def _by_category(data: Collection) -> list[Array]:
    """Return the numbers of the images of each category, in order of first appearance."""
    codes, _ = pd.factorize(np.asarray(data["annotations"].column("category_id")))
    ends = np.cumsum(np.bincount(codes))
    return np.split(np.argsort(codes, kind="stable"), ends[:-1])


def _split(images: Array, test: float) -> tuple[Array, Array]:
    train, held_out = split_indices(len(images), test)
    return images[train], images[held_out]


def _split_small(images: Array) -> tuple[Array, Array]:
    return (images[:-1], images[-1:]) if len(images) > 1 else (images, images[:0])


def _indented(data: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield an object as ``json.dumps`` writes it."""
    space = " " * INDENT
    for number, (key, value) in enumerate(sorted(data.items())):
        yield f"{',' if number else '{'}\n{space}{json.dumps(key)}: ".encode()
        if isinstance(value, RecordTable | RecordList):
            yield from value.indented(1)
        else:
            yield indented(value, space).encode()
    yield b"\n}"


def _with_lists(path: Path, data: Any) -> Collection:
    """Return a collection with lists of records that may be different from each other."""
    found = {}
    for name, key in KEYS.items():
        records = data.get(name) if isinstance(data, dict) else None
        if not isinstance(records, list):
            raise PreparationError(f"{path} has no list {name!r}")
        for number, record in enumerate(records):
            if not isinstance(record, dict) or key not in record:
                raise PreparationError(f"{path}: entry {number} of {name!r} has no {key!r}")
        found[name] = RecordList(records)
    return {**data, **found}


def _check_categories(path: Path, annotations: Records) -> None:
    numbers = annotations.column("category_id") if len(annotations) else []
    if isinstance(numbers, np.ndarray):
        return
    for place, category in enumerate(numbers):
        if not isinstance(category, int):
            raise PreparationError(
                f"{path}: the category of annotation {place} must be a whole number, "
                f"given: {category!r}"
            )
