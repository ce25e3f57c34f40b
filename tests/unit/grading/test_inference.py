"""What written cells are: as the parser of pandas has it, and the same in every version."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlebench.grading.inference import inferred, is_settled


def written(*cells: str | None) -> pd.Series[Any]:
    return pd.Series([np.nan if cell is None else cell for cell in cells], dtype=object, name="x")


@pytest.mark.parametrize(
    ("cells", "dtype", "values"),
    [
        (("1", "-3", "+5", " 7 ", "007"), "int64", [1, -3, 5, 7, 7]),
        (("1", None), "float64", [1.0, np.nan]),
        (("1", "2.5", ".5", "3.", "1e3"), "float64", [1.0, 2.5, 0.5, 3.0, 1000.0]),
        (("inf", "-Infinity", "2"), "float64", [np.inf, -np.inf, 2.0]),
        (("True", "FALSE", "true"), "bool", [True, False, True]),
        ((None, None), "float64", [np.nan, np.nan]),
        (("18446744073709551615", "1"), "uint64", [2**64 - 1, 1]),
        (("0" * 50 + "7", "1"), "int64", [7, 1]),
    ],
)
def test_numbers_and_booleans_are_recognized(
    cells: tuple[str | None, ...], dtype: str, values: list[Any]
) -> None:
    found = inferred(written(*cells))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.to_numpy(), np.array(values))


@pytest.mark.parametrize(
    "cells",
    [
        ("a", "1"),
        ("1", "a"),
        ("1", "True"),
        ("True", "1"),
        ("1_000", "2"),
        ("0x10", "2"),
        ("1", "٣"),
        ("1e309", "2"),
        ("2", "1e309"),
        ("18446744073709551616", "1"),
        ("18446744073709551616", "1.5"),
        ("1.5", "18446744073709551616"),
        ("9223372036854775808", "-1"),
        ("9" * 309, "1"),
        ("1", "9" * 5000),
        ("1", "  "),
    ],
)
def test_everything_else_is_text_as_it_is_written(cells: tuple[str, ...]) -> None:
    assert inferred(written(*cells)).tolist() == list(cells)


def test_gaps_among_booleans_stay_gaps() -> None:
    found = inferred(written("True", None))
    assert found.dtype == object
    assert found[0] is True
    assert np.isnan(found[1])


def test_a_first_number_too_large_leaves_gaps_as_gaps() -> None:
    assert inferred(written("9" * 30, None, "x")).isna().tolist() == [False, True, False]


CELLS = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.floats(-1e15, 1e15).map(repr),
    st.sampled_from(["", "True", "False", "abc", "1e5", "-.5", "NA"]),
)


@given(st.lists(CELLS, min_size=1, max_size=8))
def test_whatever_is_settled_is_what_pandas_has_parsed(cells: list[str]) -> None:
    text = "id,x\n" + "".join(f"0,{cell}\n" for cell in cells)
    parsed = pd.read_csv(io.StringIO(text), float_precision=None, low_memory=False)["x"]
    found = inferred(pd.read_csv(io.StringIO(text), dtype={"x": object})["x"])
    if is_settled(parsed):
        assert found.dtype == parsed.dtype
        np.testing.assert_allclose(found.to_numpy(), parsed.to_numpy(), rtol=1e-15)
    elif found.dtype == object:
        kept = found[found.notna()].astype(str).tolist()
        assert kept == [cell for cell in cells if cell not in ("", "NA")]


@pytest.mark.parametrize("cells", [[1e19, 1.0], [np.inf, 1.0], [-1e19]])
def test_large_floats_are_not_settled(cells: list[float]) -> None:
    assert not is_settled(pd.Series(cells))
    assert is_settled(pd.Series([1e18, np.nan]))
