"""Splitting rows, lists and groups, by numpy's legacy generator, which never changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from pytest_mlebench.errors import PreparationError

T = TypeVar("T")
Array = np.ndarray[Any, np.dtype[Any]]


def split_indices(count: int, test: float, seed: int = 0) -> tuple[Array, Array]:
    """Return the positions of train and test, both in the order of one random permutation.

    *test* is a share of the rows, rounded up, or a number of rows. The first positions of the
    permutation are the test part.
    """
    size = test if isinstance(test, int) else math.ceil(test * count)
    if not 0 < size < count:
        raise PreparationError(f"cannot take {size} test rows out of {count}")
    order = np.random.RandomState(seed).permutation(count)
    return order[size:], order[:size]


def split_rows(
    table: pd.DataFrame, test: float, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the train and the test rows of a table, in permuted order."""
    train, held_out = split_indices(len(table), test, seed)
    return table.iloc[train], table.iloc[held_out]


def split_list(items: Sequence[T], test: float, seed: int = 0) -> tuple[list[T], list[T]]:
    """Return the train and the test part of a list, in permuted order."""
    train, held_out = split_indices(len(items), test, seed)
    return [items[i] for i in train], [items[i] for i in held_out]
