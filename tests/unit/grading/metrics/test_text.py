"""Metrics of texts, and the rules for predictions that a correlation needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from submission_rules import make_rules

from pytest_mlebench import InvalidSubmission
from pytest_mlebench.grading.align import conform
from pytest_mlebench.grading.metrics.regression import spearman
from pytest_mlebench.grading.metrics.text import word_jaccard
from pytest_mlebench.grading.rules import Rules

SAMPLE = pd.DataFrame({"id": [1, 2, 3], "x": 0, "y": 0})


def rules(**more: Any) -> Rules:
    return make_rules(id="id", targets=["x", "y"], **more)


def texts(*words: str) -> Any:
    return np.array(words, dtype=object)


def test_the_overlap_is_that_of_sets_of_lower_case_words() -> None:
    truth = texts("The end", "a a b", "x\u00a0y z", "no")
    guess = texts("the\nEND the", "b c", "x Y", "")
    assert word_jaccard(truth, guess) == pytest.approx((1 + 1 / 3 + 2 / 3 + 0) / 4, rel=1e-15)


def test_two_texts_without_words_overlap_as_the_competition_says() -> None:
    truth, guess = texts("", "b"), texts("  ", "b")
    assert word_jaccard(truth, guess, both_empty=0.0) == 0.5
    assert word_jaccard(truth, guess, both_empty=1.0) == 1
    with pytest.raises(InvalidSubmission, match=r"has no words .*, their overlap is not defined$"):
        word_jaccard(truth, guess)


@pytest.mark.parametrize("value", [0.25, np.inf])
def test_a_constant_column_is_refused_where_values_must_vary(value: float) -> None:
    table = SAMPLE.assign(x=[1, 2, 3], y=value)
    assert len(conform(table, SAMPLE, rules(kind="unbounded"))) == 3
    with pytest.raises(InvalidSubmission) as caught:
        conform(table, SAMPLE, rules(kind="unbounded", varied=True))
    said = f"column 'y' is {value} in every row, and a constant has no correlation"
    assert str(caught.value) == said
    with pytest.raises(InvalidSubmission, match="constant"):
        spearman(np.eye(3)[:, :2], table[["x", "y"]].to_numpy())


def test_columns_of_booleans_may_need_a_number_beside_them() -> None:
    flags = SAMPLE.assign(x=[True, False, True], y=[False, False, True])
    strict = rules(only_booleans=False)
    assert conform(flags, SAMPLE, rules())["x"].tolist() == [1, 0, 1]
    assert conform(flags.assign(y=0.5), SAMPLE, strict)["x"].tolist() == [1, 0, 1]
    with pytest.raises(InvalidSubmission, match=r"^all values are True or False, expected num"):
        conform(flags, SAMPLE, strict)


def test_true_may_count_as_another_number_than_one() -> None:
    flags = SAMPLE.assign(x=[True, False, True], y=1)
    found = conform(flags, SAMPLE, rules(true=1.5))
    assert (found["x"].tolist(), found["y"].tolist()) == ([1.5, 0, 1.5], [1, 1, 1])


def test_a_name_is_a_label_that_is_there() -> None:
    names = rules(kind="name")
    assert conform(SAMPLE.assign(x=["a", "b", "7"]), SAMPLE, names)["x"].tolist() == ["a", "b", "7"]
    for cells in (["a", None, "b"], [None, None, None]):
        with pytest.raises(InvalidSubmission, match=r"'x' must hold a label, given: nothing for"):
            conform(SAMPLE.assign(x=cells), SAMPLE, names)
