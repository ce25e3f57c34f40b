"""Splitting image collections within their categories, and what is said of broken ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import record_table
from pytest_mlebench.preparing.coco import (
    categories,
    read_coco,
    split_categories,
    with_images,
    write_coco,
)
from pytest_mlebench.preparing.record_table import RecordList

Split = Callable[..., tuple[list[int], list[int]]]


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


@pytest.fixture(params=["table", "list"])
def split(request: pytest.FixtureRequest, tmp_path: Path) -> Split:
    """Split a collection whose records have all the same keys, or not."""

    def split(*labels: int, **options: Any) -> tuple[list[int], list[int]]:
        data = collection(*labels)
        if request.param == "list":
            data["images"][0]["note"] = "another key"
        read = read_coco(written(data, tmp_path))
        assert isinstance(read["images"], RecordList) is (request.param == "list")
        train, test = split_categories(read, 0.2, **options)
        assert categories(read, test).tolist() == [labels[number] for number in test]
        return train.tolist(), test.tolist()

    return split


def test_small_categories_lose_their_last_image_and_singles_none(split: Split) -> None:
    train, test = split(7, 3, 3, 9, 9, 9, 9)
    assert train == [0, 1, 3, 4, 5]
    assert sorted(test) == [2, 6]


def test_larger_categories_are_split_by_a_fresh_permutation_each(split: Split) -> None:
    train, test = split(*[1, 2] * 6)
    # RandomState(0).permutation(6) is 5 2 1 3 0 4, and a fifth of six is two
    assert train == [2, 6, 0, 8, 3, 7, 1, 9]
    assert sorted(test) == [4, 5, 10, 11]


def test_the_test_part_is_shuffled(split: Split) -> None:
    _, test = split(*range(8), *range(8))
    assert test == [12, 9, 13, 10, 8, 11, 15, 14]


def test_without_small_categories_all_are_split_at_random(split: Split) -> None:
    train, test = split(1, 1, 1, 2, 2, small=0)
    assert train == [1, 0, 3]
    assert sorted(test) == [2, 4]


def test_a_category_too_small_to_split_at_random_is_an_error(split: Split) -> None:
    with pytest.raises(PreparationError, match="cannot take 1 test rows out of 1"):
        split(1, 1, 2, small=0)


@pytest.mark.parametrize("window", [1, 1 << 20])
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"annotations": [], "images": []},
        {"images": [{"file_name": name} for name in ('a "b"', "c\\d", "ü")]},
        {"images": [{"file_name": "}, {", "size": [1, {"w": 2.5}]} for _ in range(3)]},
        {"images": [{"file_name": "a", "license": value} for value in (None, 1.5, True)]},
        {"images": [{"file_name": "a", "id": 10**n} for n in (3, 18, 30)]},
        {"images": [{"file_name": "a"}, {"file_name": "b", "extra": {}}, {"file_name": "c"}]},
        {"info": {"images": [], "text": '"images": ['}, "empty": [], "also": {}},
    ],
    ids=range(8),
)
def test_what_is_written_is_what_the_standard_library_writes(
    change: Any, window: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_table, "WINDOW_BYTES", window)
    monkeypatch.setattr(record_table, "BATCH_ROWS", 2)
    data = collection(1, 2, 1) | change
    order = np.array([1, 0, 0, 2] if data["images"] else [], dtype=np.int64)
    read = read_coco(written(data, tmp_path))
    names = [f"{number}.jpg" for number in range(len(order))]
    for name in ("annotations", "images"):
        data[name] = [data[name][number] for number in order]
    write_coco(with_images(read, order), tmp_path / "new" / "metadata.json")
    expected = json.dumps(data, indent=4, sort_keys=True)
    assert (tmp_path / "new" / "metadata.json").read_text() == expected
    write_coco(read["images"].take(order).assign(file_name=names), tmp_path / "list.json")
    renamed = [{**image, "file_name": f"{n}.jpg"} for n, image in enumerate(data["images"])]
    assert (tmp_path / "list.json").read_text() == json.dumps(renamed, indent=4, sort_keys=True)


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
