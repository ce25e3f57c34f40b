"""Features of the rows' files, read by several threads, within bounds of time and number."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from listing import Kind, MediaFile
from matching import Files, main_kind
from pictures import picture_features
from series import array_features, table_features
from sounds import sound_features

MAX_TRAIN_FILES = 20_000
MAX_TEST_FILES = 100_000
MAX_THREADS = 8
MIN_READABLE = 0.5  # of the files that were tried

_READERS: dict[Kind, Callable[[bytes], np.ndarray]] = {
    "picture": picture_features,
    "sound": sound_features,
    "array": array_features,
    "series": table_features,
}


@dataclass(frozen=True)
class Features:
    """Columns of numbers: for some rows of the training table, and for all of the test table."""

    rows: np.ndarray
    train: pd.DataFrame
    test: pd.DataFrame

    @property
    def test_files(self) -> int:
        """Return how many rows of the test table have any."""
        return int(self.test.notna().any(axis=1).sum())


def read_features(files: Files, *, seed: int, deadline: float) -> Features | None:
    """Return the features of files, or None where too few can be read."""
    random = np.random.default_rng(seed)
    kind = main_kind(files.test)
    train = _some(files.train, kind, MAX_TRAIN_FILES, random)
    test = _some(files.test, kind, MAX_TEST_FILES, random)
    chosen = [*(files.train[row] for row in train), *(files.test[row] for row in test)]
    if kind is None or not len(train) or not len(test):
        return None
    found = _read_all(chosen, _READERS[kind], random, deadline)
    if found is None:
        return None
    learnt, asked = found[: len(train)], found[len(train) :]
    has_features = ~np.isnan(learnt).all(axis=1)
    everywhere = np.full((len(files.test), found.shape[1]), np.nan, dtype=np.float32)
    everywhere[test] = asked
    names = [f"{kind} {number}" for number in range(found.shape[1])]
    return Features(
        rows=train[has_features],
        train=pd.DataFrame(learnt[has_features], columns=names),
        test=pd.DataFrame(everywhere, columns=names),
    )


def _some(
    files: Sequence[MediaFile | None], kind: Kind | None, most: int, random: np.random.Generator
) -> np.ndarray:
    """Return the rows with a file of that kind, at random if there are too many."""
    rows = np.array([i for i, file in enumerate(files) if file and file.kind == kind], dtype=int)
    return rows if len(rows) <= most else np.sort(random.choice(rows, most, replace=False))


def _read_all(
    files: Sequence[MediaFile | None],
    reader: Callable[[bytes], np.ndarray],
    random: np.random.Generator,
    deadline: float,
) -> np.ndarray | None:
    """Return one row for each file, of NaN where it cannot be read or time is up.

    Files are read in random order, so that too little time is too little for all alike.
    """
    order = random.permutation(len(files))
    read = partial(_read, reader=reader, deadline=deadline)
    matrix, tried, done = None, 0, 0
    with ThreadPoolExecutor(min(MAX_THREADS, os.cpu_count() or 1)) as pool:
        for place, values in zip(order, pool.map(read, (files[i] for i in order)), strict=True):
            tried += values is not None
            if values is None or not values.size:
                continue
            if matrix is None:
                matrix = np.full((len(files), len(values)), np.nan, dtype=np.float32)
            if len(values) == matrix.shape[1]:
                matrix[place] = values
                done += 1
    return matrix if tried and done >= MIN_READABLE * tried else None


def _read(
    file: MediaFile, reader: Callable[[bytes], np.ndarray], deadline: float
) -> np.ndarray | None:
    """Return a file's numbers, none where it is broken, and None where there is no time."""
    if time.monotonic() > deadline:
        return None
    try:
        values = reader(file.read()).astype(np.float32)
    except Exception:  # decoders raise whatever a broken file drives them to
        return np.empty(0, dtype=np.float32)
    return np.where(np.isfinite(values), values, np.nan)
