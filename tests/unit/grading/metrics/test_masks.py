"""Run-length encoded masks: decoding, overlap, and what is said of broken ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pytest_mlebench.errors import GraderError, InvalidSubmission
from pytest_mlebench.grading.metrics.masks import dice, parse_runs, read_masks, true_masks


def _random_mask(seed: int, pixels: int = 200) -> tuple[np.ndarray, str]:
    """Return a mask and its encoding, made run by run."""
    flat = np.random.RandomState(seed).rand(pixels) < 0.6
    tokens: list[int] = []
    for pixel in np.flatnonzero(flat):
        if tokens and tokens[-2] + tokens[-1] == pixel + 1:
            tokens[-1] += 1
        else:
            tokens += [pixel + 1, 1]
    return flat, " ".join(map(str, tokens))


@pytest.mark.parametrize("seed", range(5))
def test_runs_count_pixels_as_masks_do(seed: int) -> None:
    (one, one_text), (other, other_text) = _random_mask(seed), _random_mask(seed + 100)
    a, b = parse_runs(one_text), parse_runs(other_text)
    assert a.size == one.sum()
    assert a.common(b) == b.common(a) == (one & other).sum()
    assert a.within(77).common(b) == (one & other)[:77].sum()
    assert a.pixels().tolist() == np.flatnonzero(one).tolist()
    assert dice(a, b, both_empty=1) == 2 * (one & other).sum() / (one.sum() + other.sum())


def test_what_lies_past_the_end_is_cut_off() -> None:
    assert parse_runs("3 100 900 4").within(10).pixels().tolist() == [2, 3, 4, 5, 6, 7, 8, 9]
    assert parse_runs(f"3 {10**30}").within(10).size == 8
    assert parse_runs(f"3 1 {2**63} {2**63}").within(10).size == 1


def test_runs_may_touch_and_numbers_may_be_written_as_int_reads_them() -> None:
    assert parse_runs("  +1 2\t3 0_4 ").pixels().tolist() == [0, 1, 2, 3, 4, 5]


def test_two_empty_masks_are_for_the_competition_to_judge() -> None:
    assert dice(parse_runs(""), parse_runs(" "), both_empty=0.5) == 0.5
    assert dice(parse_runs("1 2"), parse_runs(""), both_empty=1) == 0


def test_a_length_too_few_is_as_in_the_reference() -> None:
    assert parse_runs("7").size == 0
    assert parse_runs("2 3 8").pixels().tolist() == [1, 2, 3, 7, 8, 9]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 x 4", "a mask must be pairs of whole numbers, given: '1 2 x 4'"),
        ("1.0 2", "a mask must be pairs of whole numbers, given: '1.0 2'"),
        ("0 2", "starts and lengths of a mask must be positive, given: '0 2'"),
        ("4 -1", "starts and lengths of a mask must be positive, given: '4 -1'"),
        ("0", "starts and lengths of a mask must be positive, given: '0'"),
        ("5 1 3 1", "the runs of a mask must be in order and must not overlap, given: '5 1 3 1'"),
        ("3 2 4 1", "the runs of a mask must be in order and must not overlap, given: '3 2 4 1'"),
        ("1 1 3 1 5", "a mask must have a length for every start, given: '1 1 3 1 5'"),
        (f"0 {'1' * 50}", f"must be positive, given: '0 {'1' * 35}…'"),
    ],
)
def test_a_broken_mask_is_named(text: str, message: str) -> None:
    with pytest.raises(InvalidSubmission) as caught:
        read_masks(["a", "b"], ["1 1", text])
    assert str(caught.value).endswith(f"{message} for id b")


def test_a_word_may_stand_for_the_empty_mask() -> None:
    assert [mask.size for mask in read_masks([1, 2], ["-", "4 2"], empty="-")] == [0, 2]
    with pytest.raises(InvalidSubmission, match="given: ' -' for id 1"):
        read_masks([1], [" -"], empty="-")


def test_broken_answers_are_not_the_agents_fault() -> None:
    assert [mask.size for mask in true_masks([1, 2], pd.Series([None, "1 2"]))] == [0, 2]
    with pytest.raises(GraderError, match="the answers are damaged"):
        true_masks([1], pd.Series(["x"]))
