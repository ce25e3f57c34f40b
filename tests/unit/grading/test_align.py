"""What a submission may hold beyond the expected rows and columns, and infinite numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from submission_rules import make_rules

from pytest_mlebench import InvalidSubmission
from pytest_mlebench.errors import CompetitionFileError
from pytest_mlebench.grading.align import conform
from pytest_mlebench.grading.rules import Rules

SAMPLE = pd.DataFrame({"id": [1, 2, 3, 4], "x": 0.0})
ANSWERS = SAMPLE[SAMPLE["id"] != 3]


def rules(**more: Any) -> Rules:
    return make_rules(id="id", targets=["x"], **more)


def rows(*ids: int) -> pd.DataFrame:
    return pd.DataFrame({"id": ids, "x": [id_ / 10 for id_ in ids]})


def test_only_scored_ids_are_needed_where_the_sample_has_more() -> None:
    scored = rules(rows="scored")
    for submission in (rows(4, 2, 1), rows(9, 1, 2, 4)):
        assert conform(submission, ANSWERS, scored)["x"].tolist() == [0.1, 0.2, 0.4]
        assert len(conform(submission, SAMPLE, scored, is_sample=True)) == 3


def test_a_scored_id_that_is_missing_shows_only_against_the_answers() -> None:
    assert len(conform(rows(1, 2, 3), SAMPLE, rules(rows="scored"), is_sample=True)) == 3
    with pytest.raises(InvalidSubmission, match=r"^1 row missing, for id 4$"):
        conform(rows(1, 2, 3), ANSWERS, rules(rows="scored"))


def test_half_a_sample_is_refused_though_only_some_of_it_is_scored() -> None:
    with pytest.raises(InvalidSubmission) as caught:
        conform(rows(1, 2), SAMPLE, rules(rows="scored"), is_sample=True)
    assert str(caught.value) == (
        "2 of the 4 rows of the sample are missing, such as id 3, 4: some of them are scored"
    )


@pytest.mark.parametrize("is_sample", [True, False])
def test_a_repeated_id_is_refused_whether_it_is_scored_or_not(is_sample: bool) -> None:
    expected = SAMPLE if is_sample else ANSWERS
    with pytest.raises(InvalidSubmission, match=r"^1 row with an id given before: 3$"):
        conform(rows(1, 2, 3, 3, 4), expected, rules(rows="scored"), is_sample=is_sample)


def test_some_id_must_be_known() -> None:
    with pytest.raises(InvalidSubmission, match=r"^no row has a known id, given: 7, 8$"):
        conform(rows(7, 8), SAMPLE, rules(rows="scored"), is_sample=True)


def test_a_further_column_of_zeros_passes() -> None:
    zeros = rules(extra_columns="zeros")
    assert len(conform(SAMPLE.assign(more=0), SAMPLE, zeros)) == 4
    assert len(conform(SAMPLE.assign(more=np.nan), SAMPLE, zeros)) == 4
    for value in (1, "0", False):
        with pytest.raises(InvalidSubmission, match="unexpected column 'more': a further column"):
            conform(SAMPLE.assign(more=value), SAMPLE, zeros)


def test_unbounded_numbers_may_be_infinite_but_not_missing() -> None:
    unbounded = rules(kind="unbounded")
    infinite = SAMPLE.assign(x=[np.inf, -np.inf, 1, 2])
    assert conform(infinite, SAMPLE, unbounded)["x"].tolist() == [np.inf, -np.inf, 1, 2]
    with pytest.raises(InvalidSubmission, match=r"must hold a number, given: nothing for id 2$"):
        conform(SAMPLE.assign(x=[1, np.nan, 1, 2]), SAMPLE, unbounded)


def test_a_target_may_have_another_name_but_not_both() -> None:
    table = pd.DataFrame({"id": [4, 2, 1], "y": [0.4, 0.2, 0.1]})
    named = rules(other_names={"x": "y"})
    assert conform(table, ANSWERS, named)["x"].tolist() == [0.1, 0.2, 0.4]
    with pytest.raises(InvalidSubmission) as caught:
        conform(table.assign(x=0.0), ANSWERS, named)
    assert str(caught.value) == "columns 'x' and 'y' are two names of one column, keep 'x' only"


def test_another_name_belongs_to_a_target() -> None:
    with pytest.raises(CompetitionFileError, match="other_names: z is not a known key"):
        rules(other_names={"z": "y"})


def test_one_id_that_is_no_number_does_not_hide_the_others() -> None:
    submission = rows(1, 2, 3, 4).astype({"id": object})
    submission.loc[1, "id"] = "two"
    with pytest.raises(InvalidSubmission, match=r"^1 row missing, for id 2$"):
        conform(submission.astype({"id": str}), SAMPLE, rules())


def test_ids_that_repeat_are_matched_one_by_one_and_named_as_they_are() -> None:
    twice = rows(1, 2, 2)
    assert conform(rows(2, 1, 2), twice, rules())["id"].tolist() == [1, 2, 2]
    with pytest.raises(InvalidSubmission, match=r"^1 row missing, for id 2$"):
        conform(rows(1, 1, 2), twice, rules())
    with pytest.raises(InvalidSubmission, match=r"^1 row with an unknown id: 2$"):
        conform(rows(1, 2, 2, 2), twice, rules())


def test_texts_that_repeat_are_matched_one_by_one_and_named_as_they_are() -> None:
    twice = pd.DataFrame({"id": ["b", "a", "b", "c"]})
    given = pd.DataFrame({"id": ["c", "b", "b", "a"], "x": [0.1, 0.2, 0.3, 0.4]})
    found = conform(given, twice, rules())
    assert (found["id"].tolist(), found["x"].tolist()) == (
        ["b", "a", "b", "c"],
        [0.2, 0.4, 0.3, 0.1],
    )
    with pytest.raises(InvalidSubmission, match=r"^1 row missing, for id 'b'$"):
        conform(given.assign(id=["c", "b", "a", "a"]), twice, rules())


def test_dense_sparse_and_repeated_numbers_are_aligned_alike() -> None:
    random = np.random.RandomState(3)
    for ids in (np.arange(50), random.choice(10**6, 50, replace=False), random.randint(0, 9, 50)):
        order = random.permutation(50)
        submission = pd.DataFrame({"id": ids[order], "x": order / 100})
        found = conform(submission, pd.DataFrame({"id": ids}), rules())
        assert found["id"].tolist() == ids.tolist()
        assert sorted(zip(found["id"], found["x"], strict=True)) == sorted(
            zip(ids[order], order / 100, strict=True)
        )
        if len(set(ids)) == len(ids):
            assert found["x"].tolist() == [k / 100 for k in range(50)]


@pytest.mark.parametrize("number", [2**63, 2**64 - 1])
def test_an_id_beyond_63_bits_is_shown_as_it_is(number: int) -> None:
    submission = pd.DataFrame({"id": pd.Series([1, number], dtype="uint64"), "x": 0.5})
    with pytest.raises(InvalidSubmission, match=rf"^1 row with an unknown id: {number}$"):
        conform(submission, rows(1), rules())


LONG = [6667748066914778972, 1704010963055371747, 42]  # more digits than a float has


def test_long_ids_that_went_through_floats_are_matched_if_that_is_unambiguous() -> None:
    expected = pd.DataFrame({"id": LONG, "x": 0.0})
    floats = pd.DataFrame({"id": np.array(LONG[::-1], dtype=float), "x": [0.1, 0.2, 0.3]})
    assert conform(floats, expected, rules())["x"].tolist() == [0.3, 0.2, 0.1]
    close = pd.DataFrame({"id": [LONG[0], LONG[0] + 1], "x": 0.0})
    with pytest.raises(InvalidSubmission, match=r"missing, for id 6667748066914778972, …|given"):
        conform(close.astype({"id": float}), close, rules())


def test_rounding_is_suggested_where_it_explains_the_sum_of_a_row() -> None:
    two = make_rules(id="id", targets=["x", "y"], row_sum=1e-5)
    sample = pd.DataFrame({"id": [1], "x": 0.5, "y": 0.5})
    with pytest.raises(
        InvalidSubmission, match=r"sum to 0.9999 \(1 row wrong, written with too few"
    ):
        conform(sample.assign(x=0.3333, y=0.6666), sample, two)
    with pytest.raises(InvalidSubmission, match=r"they sum to 1.5 \(1 row wrong\)$"):
        conform(sample.assign(x=1.0), sample, two)
