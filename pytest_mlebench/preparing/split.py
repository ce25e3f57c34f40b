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


def split_groups(
    table: pd.DataFrame, by: str, test: float, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of train and of test groups, groups in permuted order.

    The permutation is over the groups in ascending order of their names; the rows of a group come
    together and keep their order.
    """
    train, held_out = split_group_indices(table[by], test, seed)
    return table.iloc[train], table.iloc[held_out]


def split_group_indices(groups: pd.Series[Any], test: float, seed: int = 0) -> tuple[Array, Array]:
    """Return the positions of the rows of train and of test groups, as ``split_groups`` does."""
    group, names = pd.factorize(groups, sort=True)
    train, held_out = split_indices(len(names), test, seed)
    return _rows_of(group, train), _rows_of(group, held_out)


def split_by(
    table: pd.DataFrame, by: str, test: float, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows with train and with test values in a column, in the order of the table.

    The permutation is over the values in order of their first appearance.
    """
    train, held_out = split_indices_by(table[by], test, seed)
    return table.iloc[train], table.iloc[held_out]


def split_indices_by(values: pd.Series[Any], test: float, seed: int = 0) -> tuple[Array, Array]:
    """Return the positions of train and of test values, as ``split_by`` does."""
    parts = split_list(values.unique(), test, seed)
    train, held_out = (np.flatnonzero(values.isin(part)) for part in parts)
    return train, held_out


def _rows_of(group: Array, chosen: Array) -> Array:
    """Return the positions of the rows of the chosen groups, group after group."""
    place = np.full(group.max() + 2, -1)  # the last one is for rows without a group, numbered -1
    place[chosen] = np.arange(len(chosen))
    places = place[group]
    rows = np.flatnonzero(places >= 0)
    return rows[np.argsort(places[rows], kind="stable")]
