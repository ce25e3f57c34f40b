"""Kendall's tau between predicted and true orders of cells, pooled over all notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench import InvalidSubmission
from pytest_mlebench.grading.tokens import hashes, row_portions

COLUMN = "cell_order"
GRADE_CHECKS = True

Array = np.ndarray[Any, np.dtype[Any]]


def check_against(submission: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Refuse a row that does not hold each cell of its notebook once."""
    for _ in _orders(submission, expected):
        pass


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return 1 - 4 S / P for S swaps of neighbours and P ordered pairs of cells."""
    swaps, pairs = 0, 0
    for places, counts in _orders(submission, answers):
        swaps += inversions(places)
        pairs += int((counts * (counts - 1)).sum())
    return 1 - 4 * swaps / pairs


def inversions(values: Array) -> int:
    """Return how many pairs of a permutation of 0, 1, 2 … stand in the wrong order.

    The values are sorted by one bit after the other, the highest first. At each step those that
    agree in all higher bits stand together, from the place that the higher bits spell, and in
    their old order: a pair is wrong if a value without the bit comes after one that has it.
    """
    total = 0
    for bit in reversed(range(len(values).bit_length())):
        has_it = (values >> bit) & 1
        start = values >> (bit + 1) << (bit + 1)
        ones = np.concatenate([[0], np.cumsum(has_it)])
        before = ones[:-1] - ones[start]
        total += int(before[has_it == 0].sum())
        zeros = np.arange(len(values)) - start - before
        ordered = np.empty_like(values)
        ordered[start + np.where(has_it == 1, (1 << bit) + before, zeros)] = values
        values = ordered
    return total


def _orders(submission: pd.DataFrame, expected: pd.DataFrame) -> Iterator[tuple[Array, Array]]:
    """Yield where the given cells are among those of the truth, and how many a notebook has.

    There are those of some notebooks at a time, to bound the memory.
    """
    given, wanted = submission[COLUMN].tolist(), expected[COLUMN].tolist()
    for rows in row_portions(given, wanted):
        mine, theirs = hashes(given[rows]), hashes(wanted[rows])
        wrong = np.flatnonzero(mine.counts != theirs.counts)
        if len(wrong):
            counts = f"{mine.counts[wrong[0]]} of {theirs.counts[wrong[0]]} cells"
            raise _refusal(submission, rows.start + wrong[0], counts)
        keys, true_keys = mine.keys, theirs.keys
        order, true_order = np.argsort(keys), np.argsort(true_keys)
        if not np.array_equal(keys[order], true_keys[true_order]):
            several = range(rows.start, rows.stop)
            row = next(row for row in several if _strange(submission, expected, row))
            cell = _strange(submission, expected, row)[0]
            raise _refusal(submission, row, f"an unknown or repeated cell {cell!r}")
        places = np.empty(len(order), dtype=np.int64)
        places[order] = true_order
        yield places, theirs.counts


def _strange(submission: pd.DataFrame, expected: pd.DataFrame, row: int) -> list[str]:
    """Return the cells of a row that are not those of its notebook."""
    given, wanted = (Counter(table[COLUMN].iloc[row].split()) for table in (submission, expected))
    return list(given - wanted)


def _refusal(submission: pd.DataFrame, row: int, given: str) -> InvalidSubmission:
    return InvalidSubmission(
        f"column {COLUMN!r} must hold each cell of a notebook once, given: {given} "
        f"for id {submission['id'].iloc[row]}"
    )
