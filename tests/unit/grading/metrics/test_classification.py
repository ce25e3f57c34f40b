"""Metrics of class labels against scikit-learn, which is right and slow."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from sklearn.metrics import f1_score, matthews_corrcoef
from sklearn.preprocessing import MultiLabelBinarizer

from pytest_mlebench import InvalidSubmission
from pytest_mlebench.grading.metrics.classification import error_rate, f1, matthews, multilabel_f1
from pytest_mlebench.grading.metrics.regression import pearson

RANDOM = np.random.RandomState(5)


@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize("kind", [np.int64, object])
@pytest.mark.parametrize("classes", [2, 7, 400])
def test_f1_is_that_of_scikit_learn(
    average: Literal["macro", "micro"], kind: Any, classes: int
) -> None:
    truth = RANDOM.randint(0, classes, 300)
    guess = np.where(RANDOM.rand(300) < 0.4, truth, RANDOM.randint(-3, classes + 3, 300))
    expected = f1_score(truth, guess, average=average, zero_division=0.0)
    if kind is object:
        truth, guess = truth.astype(str).astype(object), guess.astype(str).astype(object)
    assert f1(truth, guess, average) == pytest.approx(expected, rel=1e-12)


def test_a_class_that_is_only_predicted_lowers_the_macro_f1() -> None:
    assert f1(np.array([1, 1, 2, 2]), np.array([1, 1, 2, 2])) == 1
    assert f1(np.array([1, 1, 2, 2]), np.array([1, 1, 2, 9])) == pytest.approx((1 + 2 / 3) / 3)


@pytest.mark.parametrize("classes", [1, 2, 5, 90])
def test_matthews_is_that_of_scikit_learn(classes: int) -> None:
    truth = RANDOM.randint(0, 2, 300)
    guess = np.where(RANDOM.rand(300) < 0.4, truth, RANDOM.randint(-1, classes, 300))
    for given in (guess, np.full(300, classes), 1 - truth):
        expected = matthews_corrcoef(truth, given)
        assert matthews(truth, given) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_matthews_needs_no_table_of_all_pairs_of_labels() -> None:
    truth = RANDOM.randint(0, 2, 300_000)
    assert abs(matthews(truth, np.arange(300_000))) < 0.01


def test_multilabel_f1_is_the_micro_average_over_the_true_labels() -> None:
    words = np.array(list("abcdefgh"))
    truth, guess = (
        np.array([" ".join(RANDOM.choice(words[:n], RANDOM.randint(1, 5))) for _ in range(80)])
        for n in (6, 8)
    )
    binary = MultiLabelBinarizer(classes=sorted(set(" ".join(truth).split())))
    true = binary.fit_transform([cell.split() for cell in truth])
    with pytest.warns(UserWarning, match="unknown class"):
        given = binary.transform([cell.split() for cell in guess])
    expected = f1_score(true, given, average="micro")
    found = multilabel_f1(truth.astype(object), guess.astype(object))
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("guess", "score"),
    [
        (["a b", "c"], 1.0),
        (["b  a\ta", "c unheard-of"], 1.0),
        (["a", ""], 0.5),
        (["", ""], 0.0),
        (["A B", "a,b"], 0.0),
    ],
)
def test_repeats_order_and_unknown_labels_do_not_matter(guess: list[str], score: float) -> None:
    truth = np.array(["a b", "c"], dtype=object)
    assert multilabel_f1(truth, np.array(guess, dtype=object)) == score


def test_nothing_true_and_nothing_predicted_is_worth_nothing() -> None:
    empty = np.array(["", ""], dtype=object)
    assert multilabel_f1(empty, empty) == 0


def test_the_error_rate_is_the_share_of_wrong_labels() -> None:
    assert error_rate(np.array([1, 2, 3, 4]), np.array([1, 2, 3, 5])) == 0.25


def test_predictions_beyond_any_mean_have_no_correlation() -> None:
    with pytest.raises(InvalidSubmission, match=r"^the predictions are too large for a mean"):
        pearson(np.array([0.0, 1.0, 0.5]), np.array([1e308, 1.5e308, 1.2e308]))
    assert pearson(np.array([0.0, 1.0]), np.array([1e200, 2e200])) == pytest.approx(1)
