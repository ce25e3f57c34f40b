"""Flat arrays of tokens hold what lists of tokens would."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_mlebench.grading import tokens
from pytest_mlebench.grading.tokens import (
    Lists,
    first,
    floats,
    hashes,
    number_portions,
    sets,
    split,
    whole_numbers,
)

# white space of several kinds and lengths in UTF-8, no NUL: a submission with one is refused
ALPHABET = st.characters(codec="utf-8", exclude_characters="\0\1\ufffd") | st.sampled_from(
    " \t\n\x1c\x85\xa0\u2003\u3000ab17"
)
TEXTS = st.lists(st.text(ALPHABET, max_size=30), min_size=1, max_size=6)


@pytest.fixture(autouse=True, params=[12, 1 << 17])
def portions(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "PORTION_CHARS", request.param)
        yield


def _tokens(texts: list[str], separator: str | None) -> list[list[str]]:
    found: list[list[str]] = [[] for _ in texts]
    for portion in split(texts, separator):
        for row, token in portion.texts():
            found[row].append(token)
    return found


@given(TEXTS)
@example(["", " ", "a  b", " a", "a "])
def test_texts_are_split_as_str_split_does(texts: list[str]) -> None:
    assert _tokens(texts, None) == [text.split() for text in texts]


@given(TEXTS)
@example(["", " ", "a  b", " a", "a "])
def test_single_blanks_split_as_well(texts: list[str]) -> None:
    texts = [text.replace("\n", "") for text in texts]  # a mark of ours, replaced where it occurs
    assert _tokens(texts, " ") == [text.split(" ") for text in texts]


@given(TEXTS, TEXTS)
@example(["x" * 300, "x" * 300], ["x" * 299 + "y"])
def test_hashes_are_equal_where_tokens_are(some: list[str], others: list[str]) -> None:
    both = [*some, *others]
    words = [word for text in both for word in text.split()]
    numbers = hashes(both).values.tolist()
    assert len(numbers) == len(words)
    assert len(set(numbers)) == len(set(words)) == len(set(zip(words, numbers, strict=True)))


@given(st.lists(st.lists(st.integers(-(10**20), 10**20), max_size=4), min_size=1, max_size=6))
def test_whole_numbers_are_cut_to_the_limit(rows: list[list[int]]) -> None:
    texts = [" ".join(map(str, row)) for row in rows]
    found = whole_numbers(texts, 2**61, AssertionError)
    assert found.counts.tolist() == [len(row) for row in rows]
    limited = [max(-(2**61), min(number, 2**61)) for row in rows for number in row]
    assert found.values.tolist() == limited


@pytest.mark.parametrize("token", ["x", "1.5", "1e3", "--1", "9" * 5000])
def test_what_is_no_whole_number_is_refused_by_row(token: str) -> None:
    with pytest.raises(LookupError, match=r"^row 2$"):
        whole_numbers(["1 2 3", "", f"4 5 6 {token}"], 99, lambda row: LookupError(f"row {row}"))


def test_the_first_values_of_each_row_are_kept() -> None:
    lists = hashes(["a b c", "", "d", "e f"])
    kept = first(lists, 2)
    assert kept.counts.tolist() == [2, 0, 1, 2]
    assert kept.values.tolist() == hashes(["a b", "", "d", "e f"]).values.tolist()
    assert Lists(kept.values, kept.counts).places.tolist() == [0, 1, 0, 0, 1]


@given(TEXTS)
def test_sets_have_each_token_of_a_text(texts: list[str]) -> None:
    found = sets(texts)
    for row, text in enumerate(texts):
        expected = set(hashes([text]).values.tolist())
        assert set(found.values[found.rows == row].tolist()) == expected


def test_some_values_are_taken_out_of_their_rows() -> None:
    lists = hashes(["a b c", "", "d", "e f"])
    kept = lists.where(np.array([True, False, True, False, True, True]))
    assert kept.counts.tolist() == [2, 0, 0, 2]
    assert kept.values.tolist() == hashes(["a c", "", "", "e f"]).values.tolist()


def test_numbers_come_in_portions_as_they_come_at_once() -> None:
    texts = ["1 22 333 4444 55555", "", f"6 {2**40} 8 9", "10 11 12 13 14 15 16"]
    parts = [numbers for _, numbers in number_portions(texts, 2**50, LookupError)]
    whole = whole_numbers(texts, 2**50, LookupError)
    assert np.concatenate(parts).tolist() == whole.values.tolist()
    assert sum(map(len, parts)) == 16


SPELLINGS = st.sampled_from(
    ["-0", "+1", "1.", ".5", "01", "1e5", "1E-400", "1e400", "-inf", "nan", "1_0", str(10**30)]
)


@pytest.mark.parametrize("installed", [True, False], ids=["orjson", "without"])
@given(st.lists(st.floats().map(repr) | st.integers().map(str) | SPELLINGS, min_size=1))
@example(["0.1", "-0"])
@example(["9007199254740993", "0.1000000000000000055511151231257827"])
def test_floats_are_those_of_python_in_every_spelling(installed: bool, given: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if not installed:
            patch.setattr(tokens, "orjson", None)
        found = [floats(part, 1, _refuse)[:, 0] for part in split([" ".join(given)], " ")]
    expected = np.array([float(token) for token in given])
    assert np.concatenate(found).tobytes() == expected.tobytes(), "the sign of zero, too"


@pytest.mark.parametrize("token", ["true", "null", "[1]", '"1"', "", "1,2", "{}"])
def test_what_only_json_takes_for_a_value_is_refused(token: str) -> None:
    (portion,) = split([token], " ")
    with pytest.raises(ValueError, match="no number"):
        floats(portion, 1, _refuse)


def _refuse(row: int, token: str) -> Exception:
    return ValueError(f"no number: {token}")
