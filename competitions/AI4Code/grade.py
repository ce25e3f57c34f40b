"""Kendall's tau between predicted and true orders of cells, pooled over all notebooks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench import InvalidSubmission

Array = np.ndarray[Any, np.dtype[Any]]


def check_against(submission: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Refuse a row that does not hold each cell of its notebook once."""
    given, wanted = _cells(submission), _cells(expected)
    wrong = np.flatnonzero(given.str.len().to_numpy() != wanted.str.len().to_numpy())
    if len(wrong):
        row = wrong[0]
        raise InvalidSubmission(
            f"column 'cell_order' must hold each cell of a notebook once, given: "
            f"{len(given[row])} of {len(wanted[row])} cells for id {submission['id'][row]}"
        )
    mine, theirs = map(np.sort, _keys(given, wanted))
    strange = np.flatnonzero(mine != theirs)
    if len(strange):
        row = given.explode().index[strange[0]]  # sorted keys still go from row to row
        cell = next(iter(Counter(given[row]) - Counter(wanted[row])))
        raise InvalidSubmission(
            f"column 'cell_order' must hold each cell of a notebook once, given: "
            f"an unknown or repeated cell {cell!r} for id {submission['id'][row]}"
        )


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return 1 - 4 S / P for S swaps of neighbours and P ordered pairs of cells."""
    wanted = _cells(answers)
    mine, theirs = _keys(_cells(submission), wanted)
    places = np.empty(len(mine), dtype=np.int64)
    places[np.argsort(mine)] = np.argsort(theirs)
    sizes = wanted.str.len().to_numpy()
    return 1 - 4 * inversions(places) / int((sizes * (sizes - 1)).sum())


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


def _cells(orders: pd.DataFrame) -> pd.Series[Any]:
    lists: pd.Series[Any] = orders["cell_order"].astype(object).str.split()
    return lists


def _keys(given: pd.Series[Any], wanted: pd.Series[Any]) -> tuple[Array, Array]:
    """Return a number for each cell, the same on both sides; they ascend from row to row."""
    cells = pd.concat([given, wanted]).explode()
    codes, names = pd.factorize(cells.to_numpy())
    keys = cells.index.to_numpy() * len(names) + codes
    half = len(keys) // 2
    return keys[:half], keys[half:]
