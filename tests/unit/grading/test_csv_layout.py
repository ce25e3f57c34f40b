"""Ids compared where they are in a file, and only in files where that is safe."""

from __future__ import annotations

import csv
import io
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas._libs.parsers import STR_NA_VALUES

from pytest_mlebench.grading.csv_layout import find_layout, match_rows

PLAIN = "image,label\na.jpg,1\nb.jpg,2\nccc.jpg,3\n"

CELLS = st.text(
    st.characters(codec="utf-8", exclude_characters='",\n\r\0'), min_size=1, max_size=30
)


def ids(text: str) -> list[list[int]]:
    layout = find_layout(text.encode())
    assert layout is not None
    words = layout.ids(["image"])
    assert words is not None
    return [word.tolist() for word in words]


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.removesuffix("\n"),
        PLAIN + "\n\n",
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r\n").removesuffix("\r\n"),
        "\ufeff" + PLAIN,
        "label,image\n1,a.jpg\n2,b.jpg\n3,ccc.jpg\n",
        "label,image\r\n1,a.jpg\r\n2,b.jpg\r\n3,ccc.jpg",
        "label,image,more\n1,a.jpg,x\n2,b.jpg,\n3,ccc.jpg,y",
    ],
)
def test_a_plain_file_is_one_however_its_lines_end(text: str) -> None:
    assert ids(text) == ids(PLAIN)


@pytest.mark.parametrize(
    "text",
    [
        "image,label\n",
        "image,label\n\n",
        '"image",label\na.jpg,1\n',
        "image,label\na.jpg,1\n\nb.jpg,2\n",
        "image,label\na.jpg,1\nb.jpg\nc.jpg,2,3\n",
        "image,label\na.jpg\nb.jpg,2,3\n",
        "image,label\na.jpg,1,\nb.jpg,2,\n",
        "image,label\ra.jpg,1\rb.jpg,2\r",
        "image,label\na.jpg,1\r\nb.jpg,2\n",
        "image,label\na\r.jpg,1\nb.jpg,2\n",
        "\nimage,label\na.jpg,1\n",
    ],
)
def test_what_is_not_plain_is_left_to_the_parser(text: str) -> None:
    layout = find_layout(text.encode())
    assert layout is None or "image" not in layout.header


def test_long_ids_are_left_to_the_parser() -> None:
    layout = find_layout(f"image,label\na,1\n{'b' * 257},2\n".encode())
    assert layout is not None
    assert layout.ids(["image"]) is None


@given(st.lists(CELLS, min_size=1, max_size=60, unique=True), st.integers(0, 2**32))
def test_shuffled_ids_are_found(names: list[str], seed: int) -> None:
    shuffled = random.Random(seed).sample(names, len(names))
    tables = []
    for order in (shuffled, names):
        text = io.StringIO()
        pairs = zip(order, order, strict=True)
        csv.writer(text, lineterminator="\n").writerows([("label", "image"), *pairs])
        layout = find_layout(text.getvalue().encode())
        assert layout is not None
        words = layout.ids(["image"])
        assert words is not None
        tables.append(words)
    found = match_rows(*tables, exact=True)
    assert found is not None
    assert [shuffled[place] for place in found] == names


def rows(*names: str) -> list[np.ndarray]:
    text = "image,label\n" + "".join(f"{name},0\n" for name in names)
    layout = find_layout(text.encode())
    assert layout is not None
    words = layout.ids(["image"])
    assert words is not None
    return words


@pytest.mark.parametrize(
    ("given_ids", "wanted", "exact"),
    [
        (("a", "b", "b"), ("a", "b", "c"), True),
        (("a", "b", "d"), ("a", "b", "c"), True),
        (("a", "b", "c"), ("a", "b", "b"), True),
        (("a", "b", "c", "d"), ("a", "b", "c"), True),
        (("a", "b"), ("a", "b", "c"), False),
        (("a", "b", "c", "c"), ("a", "b"), False),
        (("a", "b", "c"), ("a", "b", "b"), False),
    ],
)
def test_whatever_differs_is_left_to_others(
    given_ids: tuple[str, ...], wanted: tuple[str, ...], exact: bool
) -> None:
    assert match_rows(rows(*given_ids), rows(*wanted), exact=exact) is None


def test_further_ids_may_be_there_where_the_rules_allow_it() -> None:
    found = match_rows(rows("x", "c", "a", "y"), rows("a", "c"), exact=False)
    assert found is not None
    assert found.tolist() == [2, 1]


@pytest.mark.parametrize("word", sorted(STR_NA_VALUES))
def test_a_row_without_an_id_is_noticed_whatever_it_says_instead(word: str) -> None:
    layout = find_layout(PLAIN.replace("ccc.jpg", word).encode())
    assert layout is not None
    assert layout.lacks(["image"])


def test_words_with_more_or_less_than_that_are_ids() -> None:
    layout = find_layout(b"image,label\nNA1,1\nnulls,2\nN,3\n#N/A N/A.,4\n")
    assert layout is not None
    assert not layout.lacks(["image", "label"])
