"""Boxes: reading them, their overlaps, precision curves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from peak_memory import peak_growth
from sklearn.metrics import average_precision_score

from pytest_mlebench.errors import GraderError, InvalidSubmission
from pytest_mlebench.grading.metrics import boxes
from pytest_mlebench.grading.metrics.boxes import (
    Boxes,
    BoxFormat,
    BoxGroups,
    average_precision,
    corner_iou,
    keys_of,
    pairs_of,
    precision_recall,
    rectangle_overlaps,
    served,
)


def test_boxes_are_read_with_their_rows_and_labels() -> None:
    read = BoxFormat(3).read(["p", "q", "r"], ["cat 1 2 dog 1e3 -4", "", "cat nan 1_0"])
    assert read.rows.tolist() == [0, 0, 2]
    cat, dog = read.labels.tolist()[:2]
    assert read.labels.tolist() == [cat, dog, cat]
    assert cat != dog
    np.testing.assert_array_equal(read.numbers, [[1, 2], [1000, -4], [np.nan, 10]])


def test_boxes_in_one_cell_take_a_few_times_their_memory() -> None:
    form = BoxFormat(9, label=8)
    form.read(["a"], ["1 1 1 1 1 1 1 1 c"])
    text = " ".join(["1 1 1 1 1 1 1 1 c"] * 500_000)
    grown = peak_growth(lambda: form.read(["a"], [text]))
    assert grown <= 5 * len(text) + 20_000_000  # beside the text itself, and what is read at a time


def test_the_label_may_stand_last_or_be_missing() -> None:
    last, first = (BoxFormat(2, label=place) for place in (1, 0))
    assert last.read([1], ["0.5 car"]).labels == first.read([1], ["car 0.5"]).labels
    assert BoxFormat(2, label=None).read([1], ["3 0.5"]).numbers.tolist() == [[3, 0.5]]


def test_white_space_counts_only_where_the_format_says_so() -> None:
    assert len(BoxFormat(2, separator=None).read([1], [" a\t1  b 2 "]).rows) == 2
    assert len(BoxFormat(2, separator=None).read([1], ["   "]).rows) == 0
    empty, word = BoxFormat(2).read([1], [" 4 a 4"]).labels
    assert empty != word


def test_no_boxes_at_all_have_a_width() -> None:
    nothing = BoxFormat(6).read(["a"], [""])
    assert nothing.numbers.shape == (0, 5)


@pytest.mark.parametrize(
    ("separator", "text", "message"),
    [
        (
            " ",
            "a 1  2",
            "predictions must be groups of 3 tokens with single spaces between them, "
            "given: 4 tokens for id q",
        ),
        (
            None,
            "a 1",
            "predictions must be groups of 3 tokens with white space between them, "
            "given: 2 tokens for id q",
        ),
        (" ", "a 1 2 b 3 x", "a prediction must have a number here, given: 'x' for id q"),
        (" ", "a 1 2 b  3", "a prediction must have a number here, given: '' for id q"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(separator: str | None, text: str, message: str) -> None:
    with pytest.raises(InvalidSubmission) as caught:
        BoxFormat(3, separator=separator).read(["p", "q"], ["a 1 2", text])
    assert str(caught.value) == message


def test_broken_answers_are_not_the_agents_fault() -> None:
    assert len(BoxFormat(2).read_truth([1, 2], pd.Series([None, "a 1"])).rows) == 1
    with pytest.raises(GraderError, match="the answers are damaged: predictions must be groups"):
        BoxFormat(2).read_truth([1], pd.Series(["a"]))


@pytest.mark.parametrize("number", ["7", "1.5", "1234", "12345", "1234567890123456", "-3", "1e3"])
def test_digits_of_labels_are_not_taken_for_those_of_numbers(number: str) -> None:
    found = BoxFormat(3).read(["p"], [f"U+3042 {number} 8 77777 9 {number}"])
    assert found.numbers.tolist() == [[float(number), 8], [9, float(number)]]


@pytest.mark.parametrize("number", ["x", "1/2", "12:4", "1234567/", "12345678:", "٣x"])
def test_what_is_near_a_digit_is_no_number(number: str) -> None:
    with pytest.raises(InvalidSubmission, match="a prediction must have a number here"):
        BoxFormat(2).read(["p"], [f"0123456789 {number}"])


def test_keys_of_many_labels_in_many_rows_stay_small() -> None:
    count = 1000
    side = Boxes(np.arange(count), np.arange(count).astype(np.uint64), np.zeros((count, 0)))
    one, other = keys_of(side, side)
    assert one.tolist() == other.tolist() == list(range(count))


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 2, 2**63])), max_size=12))
def test_keys_are_the_same_for_the_same_row_and_label(boxes: list[tuple[int, int]]) -> None:
    rows, labels = ([box[place] for box in boxes] for place in (0, 1))
    side = Boxes(np.array(rows, int), np.array(labels, np.uint64), np.zeros((len(boxes), 0)))
    some, others = (keys.tolist() for keys in keys_of(side, side.where(slice(None, None, -1))))
    assert others == some[::-1]
    assert len(set(zip(some, boxes, strict=True))) == len(set(some)) == len(set(boxes))


def test_groups_are_all_boxes_of_a_label_in_a_row() -> None:
    form = BoxFormat(2)
    groups = BoxGroups.of(form.read(["p", "q", "r"], ["cat 1 dog 2 cat 3", "", "dog 4"]))
    by_group = dict.fromkeys(groups.groups.tolist(), ())
    for group, (number,) in zip(groups.groups.tolist(), groups.boxes.numbers, strict=True):
        by_group[group] += (number,)
    assert set(by_group.values()) == {(1, 3), (2,), (4,)}
    assert sorted(groups.rows.tolist()) == [0, 0, 2]
    others = form.read(["p", "q", "r"], ["dog 1 ape 1", "cat 1", "dog 1 cat 1"])
    found = [by_group.get(group) for group in groups.groups_of(others).tolist()]
    assert found == [(2,), None, None, (4,), None]
    assert BoxGroups.of(others.where(slice(0, 0))).groups_of(others).tolist() == [-1] * 5


def test_overlaps_of_boxes_by_their_corners() -> None:
    box = np.array([[0.0, 0, 10, 10]])
    others = np.array(
        [[0, 0, 10, 10], [5, 0, 15, 10], [10, 0, 20, 10], [10, 10, 0, 0], [0, 0, np.nan, 10]]
    )
    np.testing.assert_allclose(corner_iou(box, others), [1, 1 / 3, 0, 0, 0])
    assert corner_iou(np.zeros((1, 4)), np.zeros((1, 4))).tolist() == [0]


KEYS = st.integers(0, 4) | st.sampled_from([-7, 10**12])


@given(
    st.lists(KEYS, max_size=12),
    st.lists(KEYS, max_size=12),
    st.sampled_from([1, 3, 1000]),
)
def test_pairs_of_equal_keys_come_in_order(some: list[int], others: list[int], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes, "PAIRS_AT_ONCE", size)
        found = [
            pair
            for portion in pairs_of(np.array(some, dtype=int), np.array(others, dtype=int))
            for pair in zip(*map(np.ndarray.tolist, portion), strict=True)
        ]
    places = [(i, j) for i in range(len(some)) for j in range(len(others))]
    assert found == [(i, j) for i, j in places if some[i] == others[j]]


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))))
def test_each_in_turn_takes_the_first_that_is_free(pairs: set[tuple[int, int]]) -> None:
    lists = sorted(pairs)
    takers, things = np.array(lists, dtype=int).reshape(-1, 2).T
    taken: dict[int, int] = {}
    for taker, thing in lists:
        if taker not in taken and thing not in taken.values():
            taken[taker] = thing
    assert sorted(served(takers, things)) == sorted(taken)


def test_precision_never_rises_with_recall() -> None:
    hits = np.array([[0, 1], [1, 1], [1, 0]], dtype=bool)
    precision, recall = precision_recall(hits, truths=4)
    np.testing.assert_allclose(precision, [[2 / 3, 1], [2 / 3, 1], [2 / 3, 2 / 3]])
    np.testing.assert_allclose(recall, [[0, 0.25], [0.25, 0.5], [0.5, 0.5]])


@pytest.mark.parametrize("seed", range(5))
def test_average_precision_treats_equal_confidences_as_one(seed: int) -> None:
    random = np.random.RandomState(seed)
    hits, confidence = random.rand(60) < 0.4, random.randint(-3, 5, 60) / 4
    expected = average_precision_score(hits, confidence)
    assert average_precision(confidence[hits], confidence) == pytest.approx(expected, rel=1e-12)


def test_overlaps_of_turned_rectangles() -> None:
    unit = [5.0, 7, 2, 2, 0]
    others = np.array(
        [
            [5, 7, 2, 2, 0],  # itself
            [6, 7, 2, 2, 0],  # half of it
            [5, 7, 2, 2, np.pi / 4],  # an octagon
            [5, 7, 1, 1, 1.234],  # within it
            [7, 9, 2, 2, 0],  # touching at a corner
            [500, 7, 2, 2, 0],
            [5, 7, 100, 100, 0.3],  # around it
        ]
    )
    units = np.array([unit] * len(others))
    expected = [4, 2, 8 * (np.sqrt(2) - 1), 1, 0, 0, 4]
    np.testing.assert_allclose(rectangle_overlaps(units, others), expected, atol=1e-12)
    np.testing.assert_allclose(rectangle_overlaps(others, units), expected, atol=1e-12)


def test_overlaps_agree_with_counted_points() -> None:
    random = np.random.RandomState(0)
    low, high = [1, 1, 1, 1, -4], [4, 4, 4, 3, 4]
    some, others = random.uniform(low, high, (15, 5)), random.uniform(low, high, (15, 5))
    points = np.stack(np.meshgrid(*[np.linspace(-2, 7, 901)] * 2), axis=-1).reshape(-1, 2)
    counted = [
        (_inside(points, one) & _inside(points, other)).sum() * 1e-4
        for one, other in zip(some, others, strict=True)
    ]
    np.testing.assert_allclose(rectangle_overlaps(some, others), counted, atol=0.05)


def test_overlaps_of_a_quarter_turn_that_is_not_quite_one() -> None:
    one = [2466.089, 1751.7697, 4.243, 3.693, 1.3873 + np.pi / 2]
    other = [2466.089, 1751.7697, 4.243, 3.693, 1.3873]
    np.testing.assert_allclose(
        rectangle_overlaps(np.array([one, other]), np.array([other, one])), 3.693**2, rtol=1e-9
    )


def _inside(points: np.ndarray, rectangle: np.ndarray) -> np.ndarray:
    x, y, length, width, yaw = rectangle
    turned = (points - [x, y]) @ np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    return (np.abs(turned) <= [length / 2, width / 2]).all(axis=1)
