"""Image collections described by one JSON file in the manner of COCO.

The k-th annotation belongs to the k-th image, and each image has one category. Images are split
within their categories, so that rare ones are on both sides.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing.split import split_list
from pytest_mlebench.preparing.tables import read_json, write_json

MIN_SPLIT_IMAGES = 5  # categories with fewer images are not split at random

Record = dict[str, Any]
Pair = tuple[Record, Record]  # an annotation and its image


def read_coco(path: Path, *, needs: Iterable[str] = (), encoding: str = "utf-8") -> Record:
    """Read a collection, whose records must be paired and have what every split needs."""
    data: Record = read_json(path, encoding)
    _check_records(path, data, "annotations", ["category_id"])
    _check_records(path, data, "images", ["file_name"])
    counts = len(data["annotations"]), len(data["images"])
    if counts[0] != counts[1]:
        raise PreparationError(f"{path} has {counts[0]} annotations for {counts[1]} images")
    for key in needs:
        if key not in data:
            raise PreparationError(f"{path} has no entry {key!r}")
    for number, annotation in enumerate(data["annotations"]):
        if not isinstance(category := annotation["category_id"], int):
            raise PreparationError(
                f"{path}: the category of annotation {number} must be a whole number, "
                f"given: {category!r}"
            )
    return data


def write_coco(data: Any, path: Path) -> None:
    """Write a collection with sorted keys, indented."""
    write_json(data, path, indent=4, sort_keys=True)


def split_categories(
    data: Record, test: float, *, small: int = MIN_SPLIT_IMAGES
) -> tuple[list[Pair], list[Pair]]:
    """Return the train pairs, category after category, and the test pairs, shuffled.

    A share *test* of each category is held out at random; of one with fewer than *small* images
    the last one is, and a single image stays in train.
    """
    train: list[Pair] = []
    held_out: list[Pair] = []
    for pairs in _by_category(data):
        kept, taken = _split_small(pairs) if len(pairs) < small else split_list(pairs, test)
        train += kept
        held_out += taken
    random.Random(0).shuffle(held_out)
    return train, held_out


def with_pairs(data: Record, pairs: Sequence[Pair]) -> Record:
    """Return a collection that has other annotations and images and is otherwise the same."""
    annotations, images = ([pair[part] for pair in pairs] for part in (0, 1))
    return {**data, "annotations": annotations, "images": images}


def categories(pairs: Iterable[Pair]) -> list[Any]:
    """Return the category of each image."""
    return [annotation["category_id"] for annotation, _ in pairs]


def _by_category(data: Record) -> Iterator[list[Pair]]:
    """Yield the pairs of each category, in order of first appearance."""
    groups: dict[Any, list[Pair]] = {}
    for pair in zip(data["annotations"], data["images"], strict=True):
        groups.setdefault(pair[0]["category_id"], []).append(pair)
    yield from groups.values()


def _split_small(pairs: list[Pair]) -> tuple[list[Pair], list[Pair]]:
    return (pairs[:-1], pairs[-1:]) if len(pairs) > 1 else (pairs, [])


def _check_records(path: Path, data: Any, name: str, needs: Iterable[str]) -> None:
    records = data.get(name) if isinstance(data, dict) else None
    if not isinstance(records, list):
        raise PreparationError(f"{path} has no list {name!r}")
    for number, record in enumerate(records):
        for key in needs:
            if not isinstance(record, dict) or key not in record:
                raise PreparationError(f"{path}: entry {number} of {name!r} has no {key!r}")
