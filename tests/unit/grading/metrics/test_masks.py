"""Run-length encoded masks: decoding, overlap, and what is said of broken ones."""

from __future__ import annotations

import contextlib
from functools import partial

import numpy as np
import pandas as pd
import pytest
from peak_memory import peak_growth

from pytest_mlebench.errors import GraderError, InvalidSubmission
from pytest_mlebench.grading import tokens
from pytest_mlebench.grading.metrics.masks import Masks, overlap, overlaps, read_masks, true_masks


def masks(*texts: str) -> Masks:
    return read_masks(range(len(texts)), texts)


def pixels(text: str, within: int = 1000) -> list[int]:
    return masks(text).within(within).pixels().values.tolist()


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


def test_runs_count_pixels_as_masks_do() -> None:
    some, others = ([_random_mask(first + seed) for seed in range(5)] for first in (0, 100))
    a, b = (masks(*(text for _, text in side)) for side in (some, others))
    flat = [np.array([mask for mask, _ in side]) for side in (some, others)]
    both = flat[0] & flat[1]
    assert a.sizes.tolist() == flat[0].sum(axis=1).tolist()
    assert a.common(b).tolist() == b.common(a).tolist() == both.sum(axis=1).tolist()
    assert a.within(77).common(b).tolist() == both[:, :77].sum(axis=1).tolist()
    assert a.pixels().values.tolist() == np.nonzero(flat[0])[1].tolist()
    shares = 2 * both.sum(axis=1) / (flat[0].sum(axis=1) + flat[1].sum(axis=1))
    assert overlap(a, b).dice(both_empty=1).tolist() == shares.tolist()


def test_what_lies_past_the_end_is_cut_off() -> None:
    assert pixels("3 100 900 4", 10) == [2, 3, 4, 5, 6, 7, 8, 9]
    assert len(pixels(f"3 {10**30}", 10)) == 8
    assert len(pixels(f"3 1 {2**63} {2**63}", 10)) == 1


def test_pictures_may_be_of_different_sizes() -> None:
    assert masks("1 9", "1 9", "").within(np.array([3, 5, 7])).sizes.tolist() == [3, 5, 0]


def test_runs_may_touch_and_numbers_may_be_written_as_int_reads_them() -> None:
    assert pixels("  +1 2\t3 0_4 ") == [0, 1, 2, 3, 4, 5]


def test_two_empty_masks_are_for_the_competition_to_judge() -> None:
    assert overlap(masks("", "1 2"), masks(" ", "")).dice(both_empty=0.5).tolist() == [0.5, 0]


def test_a_length_too_few_is_as_in_the_reference() -> None:
    found = masks("7", "2 3 8", "", "4 1", "9", "5 5 20")
    assert found.counts.tolist() == [0, 2, 0, 1, 0, 2]
    assert found.runs.tolist() == [[1, 4], [7, 10], [3, 4], [4, 9], [19, 24]]


def test_a_mask_in_one_cell_takes_a_few_times_its_memory() -> None:
    text = "1 1 " * 2_500_000
    tried("1 1 1 1")
    ordered = " ".join(f"{start} 1" for start in range(1, 2_000_000, 2))
    for mask in (text, ordered):
        assert peak_growth(partial(tried, mask)) <= 5 * len(mask)  # beside the text itself


def tried(text: str) -> None:
    with contextlib.suppress(InvalidSubmission):
        read_masks(["a"], [text])


def test_a_mask_in_one_cell_is_read_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "PORTION_CHARS", 50)
    text = " ".join(f"{start} 1" for start in range(1, 2000, 2))
    assert masks("1 1", text, "", "5 5").sizes.tolist() == [1, 1000, 0, 5]


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
    assert read_masks([1, 2], ["-", "4 2"], empty="-").sizes.tolist() == [0, 2]
    with pytest.raises(InvalidSubmission, match="given: ' -' for id 1"):
        read_masks([1], [" -"], empty="-")


def test_broken_answers_are_not_the_agents_fault() -> None:
    assert true_masks([1, 2], pd.Series([None, "1 2"])).sizes.tolist() == [0, 2]
    with pytest.raises(GraderError, match="the answers are damaged"):
        true_masks([1], pd.Series(["x"]))


def test_overlaps_are_the_same_in_portions_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, given = ([_random_mask(first + seed)[1] for seed in range(9)] for first in (0, 50))
    whole = overlaps(pd.Series(range(9)), truth, given, 150)
    monkeypatch.setattr(tokens, "PORTION_CHARS", 200)
    parts = overlaps(pd.Series(range(9)), truth, given, 150)
    for side in ("true", "given", "common"):
        assert getattr(whole, side).tolist() == getattr(parts, side).tolist()
    with pytest.raises(GraderError, match=r"the answers are damaged: .* for id 8"):
        overlaps(pd.Series(range(9)), [*truth[:8], "x"], given, 150)
