"""Splits by group against what scikit-learn and pandas make of the same table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from pytest_mlebench.errors import PreparationError
from pytest_mlebench.preparing import split_by, split_groups


@pytest.fixture(params=[0, 1, 42])
def table(request: pytest.FixtureRequest) -> pd.DataFrame:
    """Return rows of unordered groups, in several pieces each."""
    names = np.random.RandomState(request.param).choice([f"g{k}" for k in range(37)], 300)
    return pd.DataFrame({"group": names, "value": range(300)})


@pytest.mark.parametrize("seed", [0, 7])
def test_groups_come_in_permuted_order_and_their_rows_as_they_stood(
    table: pd.DataFrame, seed: int
) -> None:
    groups = [rows for _, rows in table.groupby("group")]
    train, test = train_test_split(groups, test_size=0.1, random_state=seed)
    ours = split_groups(table, "group", 0.1, seed)
    pd.testing.assert_frame_equal(ours[0], pd.concat(train))
    pd.testing.assert_frame_equal(ours[1], pd.concat(test))


def test_rows_without_a_group_are_in_neither_part() -> None:
    table = pd.DataFrame({"group": ["a", None, "b", "a", None], "value": range(5)})
    train, test = split_groups(table, "group", 0.5)
    assert sorted([*train["value"], *test["value"]]) == [0, 2, 3]


@pytest.mark.parametrize("seed", [0, 42])
def test_rows_by_value_keep_their_order(table: pd.DataFrame, seed: int) -> None:
    train, test = train_test_split(table["group"].unique(), test_size=0.1, random_state=seed)
    ours = split_by(table, "group", 0.1, seed)
    pd.testing.assert_frame_equal(ours[0], table[table["group"].isin(train)])
    pd.testing.assert_frame_equal(ours[1], table[table["group"].isin(test)])


@pytest.mark.parametrize("split", [split_groups, split_by])
def test_one_group_cannot_be_split(split: object) -> None:
    with pytest.raises(PreparationError, match="cannot take 1 test rows out of 1"):
        split(pd.DataFrame({"group": ["a", "a"]}), "group", 0.1)  # type: ignore[operator]
