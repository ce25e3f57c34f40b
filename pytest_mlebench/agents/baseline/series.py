"""Arrays of numbers: signals and fields in files, and lists of numbers in the cells of a table."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pandas as pd
from pictures import SIDE, pixel_features

MAX_CHANNELS = 12
MIN_LENGTH = 36  # of a list, to be more than a few numbers
BANDS = 16
_QUANTILES = (1, 10, 50, 90, 99)


def array_features(content: bytes) -> np.ndarray:
    """Return the numbers of a NumPy file: a field, several fields, or a signal."""
    values = np.load(io.BytesIO(content), allow_pickle=False)
    values = np.nan_to_num(np.squeeze(values).astype(float))
    if values.ndim == 1:
        return signal_features(values)
    if values.ndim == 3:  # fields of the same size, one below the other
        values = values.reshape(-1, values.shape[-1])
    if values.ndim != 2:
        raise ValueError(f"an array of {values.ndim} dimensions")
    return field_features(values)


def table_features(content: bytes) -> np.ndarray:
    """Return the numbers of a table whose columns are signals."""
    table = pd.read_csv(io.BytesIO(content), dtype=float)
    columns = [table[name].to_numpy() for name in table.columns[:MAX_CHANNELS]]
    return np.concatenate([signal_features(column) for column in columns])


def list_features(train: pd.DataFrame, test: pd.DataFrame) -> Iterator[np.ndarray]:
    """Yield the numbers of each column of equally long lists, training rows before test rows."""
    for name in train.columns:
        if name in test.columns and _length(train[name]) == _length(test[name]) > 0:
            lists = np.array([*train[name], *test[name]], dtype=float)
            yield np.stack([_row_features(row) for row in np.nan_to_num(lists)])


def signal_features(values: np.ndarray) -> np.ndarray:
    """Return moments, quantiles, changes and the spectrum of a signal with gaps."""
    gaps = np.isnan(values)
    values = np.zeros(2) if gaps.all() or len(values) < 2 else values[~gaps]
    changes = np.abs(np.diff(values)) if len(values) > 1 else np.zeros(1)
    power = np.abs(np.fft.rfft(values - values.mean())) ** 2
    edges = np.geomspace(1, len(power) + 1, BANDS + 1).astype(int)
    bands = [power[a : max(b, a + 1)] for a, b in pairwise(edges)]
    strengths = [np.log(band.mean() / len(values) + 1e-6) if band.size else -14 for band in bands]
    parts = [
        [gaps.mean(), values.mean(), values.std(), np.log(values.std() + 1e-6)],
        np.percentile(values, _QUANTILES),
        [changes.mean(), changes.max()],
        strengths,
    ]
    return np.concatenate([np.asarray(part, dtype=float) for part in parts])


def field_features(values: np.ndarray) -> np.ndarray:
    """Return the numbers of a field: its range, and those of it as a grey picture."""
    low, high = np.percentile(values, (1, 99))
    grey = np.clip((values - low) / (high - low + 1e-12), 0, 1)
    square = np.repeat(_means(_means(grey, 0), 1)[..., None], 3, axis=2)
    moments = [low, high, values.mean(), values.std(), values.min(), values.max()]
    return np.concatenate([moments, pixel_features(square)])


def _means(values: np.ndarray, axis: int) -> np.ndarray:
    """Return the means of as many pieces as a square has, which repeat where there are fewer."""
    length = values.shape[axis]
    starts = np.linspace(0, length, SIDE, endpoint=False).astype(int)
    sizes = np.maximum(np.diff([*starts, length]), 1)
    sums = np.add.reduceat(values, starts, axis=axis)
    means: np.ndarray = sums / (sizes[:, None] if axis == 0 else sizes)
    return means


def _row_features(row: np.ndarray) -> np.ndarray:
    side = round(len(row) ** 0.5)
    return field_features(row.reshape(side, side)) if side**2 == len(row) else signal_features(row)


def _length(values: pd.Series) -> int:
    """Return the length of the lists of numbers in a column; 0 where they are not alike."""
    lengths = {len(value) if isinstance(value, list) else 0 for value in values}
    if len(lengths) > 1 or min(lengths, default=0) < MIN_LENGTH:
        return 0
    first = values.iloc[0]
    return len(first) if all(isinstance(value, int | float) for value in first) else 0
