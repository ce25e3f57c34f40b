"""Splitting image collections within their categories, and what is said of broken ones."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing.coco import (
    categories,
    read_coco,
    split_categories,
    with_pairs,
    write_coco,
)


def collection(*labels: int) -> dict[str, Any]:
    """Return a collection with an image for each label, numbered in order."""
    return {
        "annotations": [{"id": n, "category_id": label} for n, label in enumerate(labels)],
        "images": [{"id": n, "file_name": f"{n}.jpg"} for n in range(len(labels))],
        "info": {"year": 2020},
    }


def written(data: Any, folder: Path) -> Path:
    (folder / "metadata.json").write_text(json.dumps(data))
    return folder / "metadata.json"


def numbers(pairs: list[Any]) -> list[int]:
    assert all(annotation["id"] == image["id"] for annotation, image in pairs)
    return [image["id"] for _, image in pairs]


def test_small_categories_lose_their_last_image_and_singles_none() -> None:
    train, test = split_categories(collection(7, 3, 3, 9, 9, 9, 9), 0.2)
    assert numbers(train) == [0, 1, 3, 4, 5]
    assert sorted(numbers(test)) == [2, 6]


def test_larger_categories_are_split_by_a_fresh_permutation_each() -> None:
    train, test = split_categories(collection(*[1, 2] * 6), 0.2)
    # RandomState(0).permutation(6) is 5 2 1 3 0 4, and a fifth of six is two
    assert numbers(train) == [2, 6, 0, 8, 3, 7, 1, 9]
    assert sorted(numbers(test)) == [4, 5, 10, 11]


def test_the_test_part_is_shuffled() -> None:
    _, test = split_categories(collection(*range(8), *range(8)), 0.2)
    assert numbers(test) == [12, 9, 13, 10, 8, 11, 15, 14]
    assert categories(test) == [4, 1, 5, 2, 0, 3, 7, 6]


def test_without_small_categories_all_are_split_at_random() -> None:
    train, test = split_categories(collection(1, 1, 1, 2, 2), 0.2, small=0)
    assert Counter(categories(test)) == {1: 1, 2: 1}
    assert numbers(train) == [1, 0, 3]


def test_a_category_too_small_to_split_at_random_is_an_error() -> None:
    with pytest.raises(PreparationError, match="cannot take 1 test rows out of 1"):
        split_categories(collection(1, 1, 2), 0.2, small=0)


def test_everything_but_the_pairs_is_kept(tmp_path: Path) -> None:
    data = collection(1, 1)
    train, _ = split_categories(data, 0.2)
    write_coco(with_pairs(data, train), tmp_path / "new" / "metadata.json")
    text = (tmp_path / "new" / "metadata.json").read_text()
    assert json.loads(text) == {**collection(1), "info": {"year": 2020}}
    assert text.startswith('{\n    "annotations": [\n        {\n            "category_id": 1,')
    assert text.endswith("}")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"annotations": None}, "has no list 'annotations'"),
        ({"images": []}, "has 2 annotations for 0 images"),
        ({"images": [{"file_name": "a"}, {"id": 1}]}, "entry 1 of 'images' has no 'file_name'"),
        ({"annotations": [1, 2]}, "entry 0 of 'annotations' has no 'category_id'"),
        ({}, "has no entry 'licenses'"),
        (
            {"licenses": [], "annotations": [{"category_id": 1}, {"category_id": "x"}]},
            "the category of annotation 1 must be a whole number, given: 'x'",
        ),
    ],
)
def test_a_broken_collection_is_named(change: Any, problem: str, tmp_path: Path) -> None:
    path = written(collection(1, 1) | change, tmp_path)
    with pytest.raises(PreparationError) as caught:
        read_coco(path, needs=["licenses"])
    assert str(caught.value).startswith(str(path))
    assert problem in str(caught.value)


def test_a_list_is_not_a_collection(tmp_path: Path) -> None:
    with pytest.raises(PreparationError, match="has no list 'annotations'"):
        read_coco(written([1, 2], tmp_path))


def test_half_a_file_is_named(tmp_path: Path) -> None:
    path = written(collection(1, 1), tmp_path)
    path.write_text(path.read_text()[:40])
    with pytest.raises(PreparationError, match=r"metadata\.json cannot be read: "):
        read_coco(path)


def test_text_in_another_encoding_is_named(tmp_path: Path) -> None:
    path = written(collection(1, 1), tmp_path)
    path.write_bytes(path.read_bytes().replace(b"info", b"inf\xf3"))
    with pytest.raises(PreparationError, match=r"metadata\.json is not utf-8 text"):
        read_coco(path)
    assert "infó" in read_coco(path, encoding="latin-1")
