"""Metrics of ranked lists against plain ones, which are right and slow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import label_ranking_average_precision_score

from pytest_mlebench import load_competition
from pytest_mlebench.grading.metrics.ranking import label_ranking_precision, map_at_k

RANDOM = np.random.RandomState(3)


def texts(*cells: str) -> Any:
    return np.array(cells, dtype=object)


def lists(count: int, most: int) -> Any:
    words = [f"w{number}" for number in range(9)] + ["", "nan"]
    return texts(*(" ".join(RANDOM.choice(words, RANDOM.randint(0, most))) for _ in range(count)))


def plain(truth: str, guess: str, k: int) -> float:
    relevant, seen, gained = set(truth.split(" ")), set(), 0.0
    for rank, token in enumerate(guess.split(" ")[:k], start=1):
        if token in relevant and token not in seen:
            seen.add(token)
            gained += len(seen) / rank
    return gained / min(len(relevant), k)


@pytest.mark.parametrize("k", [1, 3, 5, 12])
def test_map_at_k_is_the_mean_over_rows(k: int) -> None:
    truth, guess = lists(300, 6), lists(300, 20)
    expected = np.mean([plain(t, g, k) for t, g in zip(truth, guess, strict=True)])
    assert map_at_k(truth, guess, k) == pytest.approx(expected, rel=1e-12)


def test_a_repeated_token_uses_up_its_place() -> None:
    assert map_at_k(texts("a b"), texts("a a b"), 3) == pytest.approx((1 + 2 / 3) / 2)
    assert map_at_k(texts("a b"), texts("x a"), 1) == 0


def test_label_ranking_is_that_of_scikit_learn_weighted_by_the_number_of_labels() -> None:
    truth = (RANDOM.rand(120, 15) < 0.15).astype(int)
    truth[0] = 0
    scores = RANDOM.randint(-4, 5, truth.shape).astype(float)
    expected = label_ranking_average_precision_score(truth, scores, sample_weight=truth.sum(axis=1))
    assert label_ranking_precision(truth, scores) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8, 100])
def test_inversions_are_the_pairs_in_the_wrong_order(count: int) -> None:
    inversions = load_competition("AI4Code").grader.inversions
    for _ in range(5):
        values = RANDOM.permutation(count)
        expected = sum(np.count_nonzero(values[:at] > values[at]) for at in range(count))
        assert inversions(values) == expected
    assert inversions(np.arange(count)) == 0
    assert inversions(np.arange(count)[::-1].copy()) == count * (count - 1) // 2
