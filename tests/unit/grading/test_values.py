"""What a column may hold, by kind, and what is said of what it may not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pytest_mlebench import InvalidSubmission
from pytest_mlebench.grading.values import Column, convert


def column(*cells: Any, missing: str = "reject") -> Column:
    dtype = object if any(isinstance(cell, str) for cell in cells) else None
    ids = pd.Series([f"r{number}" for number in range(len(cells))])
    return Column(pd.Series(cells, name="label", dtype=dtype), ids, missing=missing)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ((3, -4), [3, -4]),
        ((3.9, -0.9, 1e18), [3, 0, 10**18]),
        ((True, False), [1, 0]),
        ((" 4 ", "007", "1_000", "+5"), [4, 7, 1000, 5]),
    ],
)
def test_truncated_numbers_are_cut_toward_zero(cells: tuple[Any, ...], expected: list[int]) -> None:
    found = convert(column(*cells), "truncated")
    assert found.dtype == np.int64
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        (("4", "4.0"), "must hold a whole number, given: '4.0' for id r1"),
        (("4", "deer", "cat"), "must hold a whole number, given: 'deer' for id r1 (and 1 more)"),
        (("4", None), "must hold a whole number, given: nothing for id r1"),
        ((1.0, np.nan), "must hold a finite number, given: nothing for id r1"),
        ((1.0, np.inf), "must hold a finite number, given: inf for id r1"),
        (("4", str(2**63)), "must hold a whole number of 64 bits, given: '9223372036854775808'"),
        ((2**63, 4), "must hold a whole number of 64 bits, given: 9223372036854775808 for id r0"),
        (("4", "9" * 30), "must hold a whole number of 64 bits"),
    ],
)
def test_what_cannot_be_truncated_is_named(cells: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(InvalidSubmission) as caught:
        convert(column(*cells), "truncated")
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ((71, 8), [71, 8]),
        (("71 8 3", "  8\t1", "0009"), [71, 8, 9]),
        ((True, False), [1, 0]),
    ],
)
def test_the_first_of_several_numbers_counts(cells: tuple[Any, ...], expected: list[int]) -> None:
    assert convert(column(*cells), "first").tolist() == expected


@pytest.mark.parametrize(
    ("cells", "given"),
    [
        ((71.0, 8.0), "71.0 for id r0 (and 1 more)"),
        ((71.0, np.nan), "nothing for id r1"),
        (("71 8", "   "), "nothing for id r1"),
        (("71 8", "71,8"), "'71,8' for id r1"),
        (("71 8", "8.0 3"), "'8.0' for id r1"),
        ((8, 10**25), "'10000000000000000000000000' for id r1"),
    ],
)
def test_what_begins_with_no_whole_number_is_refused(cells: tuple[Any, ...], given: str) -> None:
    with pytest.raises(InvalidSubmission, match="column 'label' must hold") as caught:
        convert(column(*cells), "first")
    assert str(caught.value).endswith(f"given: {given}")


def test_words_may_be_numbers_among_texts_and_may_be_missing() -> None:
    words = convert(column("1 2", "7", None, missing="empty"), "words")
    assert words.tolist() == ["1 2", "7", ""]
    assert convert(column(np.nan, np.nan, missing="empty"), "words").tolist() == ["", ""]


@pytest.mark.parametrize(
    ("cells", "given"),
    [
        ((1, 2), "1 for id r0 (and 1 more)"),
        ((np.nan, 2.0), "2.0 for id r1"),
        ((None, True), "True for id r1"),
    ],
)
def test_a_column_of_bare_numbers_is_not_words(cells: tuple[Any, ...], given: str) -> None:
    with pytest.raises(InvalidSubmission) as caught:
        convert(column(*cells, missing="empty"), "words")
    assert str(caught.value) == f"column 'label' must hold a text, given: {given}"


def test_missing_words_become_nan_only_among_texts() -> None:
    assert convert(column("rye", None, missing="nan"), "words").tolist() == ["rye", "nan"]
    with pytest.raises(InvalidSubmission) as caught:
        convert(column(np.nan, np.nan, missing="nan"), "words")
    assert str(caught.value) == (
        "column 'label' must hold a text, given: nothing for id r0 (and 1 more)"
    )


@pytest.mark.parametrize(
    ("cells", "expected"),
    [((True, False), [1, 0]), ((1, 0, 2), [1, 0, 2]), ((1.0, -3.0), [1, -3])],
)
def test_booleans_may_be_whole_numbers(cells: tuple[Any, ...], expected: list[int]) -> None:
    assert convert(column(*cells), "boolean").tolist() == expected


@pytest.mark.parametrize("number", ["-1", "0", "0.5", "inf"])
def test_a_number_among_booleans_makes_all_of_them_wrong(number: str) -> None:
    found = convert(column("True", "false", number), "boolean")
    assert not np.isin(found, [0, 1]).any()


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        (("True", "False", "perhaps"), "True or False, given: 'perhaps' for id r2"),
        (("True", "0"), "True or False, given: '0' for id r1"),
        (("yes", "no"), "True or False, given: 'yes' for id r0 (and 1 more)"),
        ((True, None), "True or False, given: nothing for id r1"),
        ((1.0, 0.7), "a whole number, given: 0.7 for id r1"),
        ((1.0, np.nan), "a finite number, given: nothing for id r1"),
    ],
)
def test_what_is_neither_true_nor_false_is_named(cells: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(InvalidSubmission) as caught:
        convert(column(*cells), "boolean")
    assert str(caught.value) == f"column 'label' must hold {problem}"


def test_a_missing_label_is_the_empty_one() -> None:
    assert convert(column("rust", None), "label").tolist() == ["rust", ""]
    assert convert(column(np.nan, np.nan), "label").tolist() == ["", ""]
    assert convert(column(4, 2), "label").tolist() == ["4", "2"]


@pytest.mark.parametrize(
    ("cells", "given"),
    [
        ((4.0, np.nan), "nothing for id r1"),
        ((None, True), "nothing for id r0"),
        ((4.0, 0.5), "0.5 for id r1"),
        ((4.0, np.inf), "inf for id r1"),
        ((4.0, 1e30), "1e+30 for id r1"),
    ],
)
def test_numbers_with_gaps_or_fractions_are_no_labels(cells: tuple[Any, ...], given: str) -> None:
    with pytest.raises(InvalidSubmission) as caught:
        convert(column(*cells), "label")
    assert str(caught.value) == f"column 'label' must hold a label, given: {given}"


@pytest.mark.parametrize("long", ["9" * 20, "-" + "9" * 309, "9" * 4300, "9" * 5000])
def test_a_whole_number_beyond_64_bits_is_said_to_be_one(long: str) -> None:
    with pytest.raises(InvalidSubmission, match=r"must hold a number of 64 bits, given: '-?999"):
        convert(column("0.5", long), "number")
    with pytest.raises(InvalidSubmission, match="must hold a number, given: 'x'"):
        convert(column("0.5", "x"), "number")


def test_the_ends_of_a_range_are_written_out() -> None:
    limited = replace(column(3825810.0, 5.0), range=(0, 1048576))
    with pytest.raises(InvalidSubmission, match="a number from 0 to 1048576, given: 3825810"):
        convert(limited, "number")
