"""Decimal numbers as the default parser of pandas 1.2 to 3.0 reads them, in any version.

It adds up at most 17 digits, leading zeros included, in a double and scales the sum by a power of
ten. With more than 15 digits the last bit can differ from the nearest double, and where prepared
files were made this way, the difference is in their bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench._csv import read_frame
from pytest_mlebench.preparing.tables import read_csv, reading

Array = np.ndarray[Any, np.dtype[Any]]

MAX_DIGITS = 17
EXACT_DIGITS = 15  # so many fit into a double without rounding
MAX_EXPONENT = 308
DECIMAL = r"^\s*([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,4}))?\s*$"

_POWERS = np.array([float(f"1e{exponent}") for exponent in range(MAX_EXPONENT + 1)])


def read_csv_inexact(path: Path, *, needs: Iterable[str] = (), **options: Any) -> pd.DataFrame:
    """Read a raw csv file like ``read_csv``, but floats as the older default parser does."""
    table = read_csv(path, needs=needs, **options)
    floats = [name for name, dtype in table.dtypes.items() if dtype == np.float64]
    if not floats:
        return table
    with reading(path):
        texts = read_frame(path, usecols=floats, dtype=str, keep_default_na=False, **options)
    return table.assign(**{name: inexact(texts[name], table[name].to_numpy()) for name in floats})


def inexact(texts: pd.Series[Any], exact: Array) -> Array:
    """Return *exact*, the nearest doubles of *texts*, as the older parser would have read them."""
    long = texts.str.len().to_numpy() > EXACT_DIGITS + 1
    differs = np.flatnonzero(long | texts.str.contains("[eE]").to_numpy(dtype=bool))
    parts = texts.iloc[differs].str.extract(DECIMAL).fillna("").astype(object)
    values = _parse(*(parts[name] for name in parts)) if len(differs) else np.array([])
    result = np.array(exact, dtype=np.float64)
    known = ~np.isnan(values)
    result[differs[known]] = values[known]
    return result


def _parse(
    sign: pd.Series[Any], whole: pd.Series[Any], fraction: pd.Series[Any], power: pd.Series[Any]
) -> Array:
    """Return the values of decimals in four parts; NaN for what is none or out of range."""
    digits = (whole + fraction).str[:MAX_DIGITS]
    used = np.minimum(whole.str.len(), MAX_DIGITS)
    decimals = digits.str.len() - used
    exponent = _integers(power) + whole.str.len().to_numpy() - used.to_numpy() - decimals.to_numpy()
    number = _integers(digits.str[:EXACT_DIGITS]).astype(np.float64)
    for place in range(EXACT_DIGITS, MAX_DIGITS):
        digit = digits.str[place : place + 1]
        longer = number * 10.0 + _integers(digit)
        number = np.where(digit != "", longer, number)
    number = np.where(sign == "-", -number, number)
    return np.where(digits != "", _scaled(number, exponent), np.nan)


def _scaled(number: Array, exponent: Array) -> Array:
    up = _POWERS[np.clip(exponent, 0, MAX_EXPONENT)]
    down = _POWERS[np.clip(-exponent, 0, MAX_EXPONENT)]
    subnormal = _POWERS[np.clip(-MAX_EXPONENT - exponent, 0, MAX_EXPONENT)]
    with np.errstate(over="ignore", under="ignore"):
        values = np.where(exponent > 0, number * up, number / subnormal / down)
    return np.where((exponent <= MAX_EXPONENT) & np.isfinite(values), values, np.nan)


def _integers(texts: pd.Series[Any]) -> Array:
    """Return whole numbers of at most 15 digits; no digits are zero."""
    return np.asarray(texts.where(texts != "", "0").astype(np.int64))
