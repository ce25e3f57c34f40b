"""The rows as matrices, in the views that different models want.

Nothing here looks at a target, so that one set of matrices serves every fold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from columns import Columns

MAX_LEVELS = 30  # of a category that get a column of their own
LETTERS_UP_TO = 20_000  # rows of text: beyond, words must do
TOPICS = 48  # dimensions that text gets beside numbers

Matrix = Any  # an array or a sparse matrix: both are indexed by rows


@dataclass(frozen=True)
class View:
    """The same columns of the training rows and of the test rows."""

    train: Matrix
    test: Matrix


@dataclass(frozen=True)
class Views:
    """*plain* for trees, *scaled* for what measures distances, *words* for models on text."""

    plain: View | None
    scaled: View | None
    words: View | None = None

    def only(self, rows: np.ndarray) -> Views:
        """Return the views with some of the training rows."""
        views = (self.plain, self.scaled, self.words)
        return Views(*(view and View(view.train[rows], view.test) for view in views))


def make_views(train: pd.DataFrame, test: pd.DataFrame, columns: Columns, seed: int) -> Views:
    """Turn two tables with the same columns into matrices."""
    both = pd.concat([train, test], ignore_index=True)
    rows = len(train)
    numbers = _stack(_numbers(both, columns), len(both))
    numbers[np.isinf(numbers)] = np.nan
    levels = _stack(_levels(both, columns), len(both))
    codes = _stack(_codes(both, columns), len(both))
    pixels = not codes.shape[1] and _are_pixels(numbers)
    scaled = np.hstack([numbers / numbers.max() if pixels else _standard(numbers), levels])
    plain = np.hstack([numbers, codes])
    if not columns.texts:
        return Views(_view(plain, rows), _view(scaled, rows))
    words = _words(both, columns, rows)
    beside = _view(_sparse_beside(words, _unit(scaled)), rows)
    if columns.only_text:
        return Views(None, None, beside)
    topics = _topics(words, rows, seed)
    plain, scaled = np.hstack([plain, topics]), np.hstack([scaled, topics])
    return Views(_view(plain, rows), _view(scaled, rows), beside)


def _view(matrix: Matrix, rows: int) -> View | None:
    return View(matrix[:rows], matrix[rows:]) if matrix.shape[1] else None


def _stack(columns: Iterator[np.ndarray], rows: int) -> np.ndarray:
    found = list(columns)
    return np.column_stack(found) if found else np.empty((rows, 0))


def _numbers(both: pd.DataFrame, columns: Columns) -> Iterator[np.ndarray]:
    """Yield the numbers, the parts of dates, and the lengths of texts."""
    for name in columns.numbers:
        yield both[name].to_numpy(dtype=float, na_value=np.nan)
    for name in columns.dates:
        dates = pd.to_datetime(both[name], errors="coerce", format="mixed", utc=True)
        yield (dates - pd.Timestamp(0, tz="UTC")).dt.total_seconds().to_numpy(dtype=float)
        for part in ("year", "month", "day", "dayofweek", "hour"):
            yield getattr(dates.dt, part).to_numpy(dtype=float)
    for name in columns.texts:
        text = both[name].fillna("").astype(str)
        yield text.str.len().to_numpy(dtype=float)
        yield text.str.count(r"\S+").to_numpy(dtype=float)


def _codes(both: pd.DataFrame, columns: Columns) -> Iterator[np.ndarray]:
    """Yield how common each category is, and its rank among the common ones."""
    for name in columns.categories:
        counts = both[name].value_counts()
        yield both[name].map(counts).to_numpy(dtype=float)
        ranks = pd.Series(np.arange(len(counts)), index=counts.index)
        yield both[name].map(ranks).to_numpy(dtype=float)


def _levels(both: pd.DataFrame, columns: Columns) -> Iterator[np.ndarray]:
    """Yield a column of zeros and ones for each common category."""
    for name in columns.categories:
        for level in both[name].value_counts().index[:MAX_LEVELS]:
            yield (both[name] == level).to_numpy(dtype=float, na_value=0.0)


def _standard(numbers: np.ndarray) -> np.ndarray:
    """Return columns of mean zero and deviation one; long tails are cut by a logarithm."""
    if not numbers.shape[1]:
        return numbers
    filled = np.where(np.isnan(numbers), np.nanmedian(numbers, axis=0), numbers)
    low = filled.min(axis=0)
    deviation = filled.std(axis=0) + 1e-12
    skewed = ((filled - filled.mean(axis=0)) ** 3).mean(axis=0) / deviation**3 > 2
    tamed = np.where(skewed & (low >= 0), np.log1p(filled - low), filled)
    standard: np.ndarray = (tamed - tamed.mean(axis=0)) / (tamed.std(axis=0) + 1e-12)
    return standard


def _unit(numbers: np.ndarray) -> np.ndarray:
    """Return columns between zero and one, of the size of weighted words."""
    low = numbers.min(axis=0)
    unit: np.ndarray = (numbers - low) / (numbers.max(axis=0) - low + 1e-12)
    return unit


def _are_pixels(numbers: np.ndarray) -> bool:
    """Tell whether the columns are pixels: many, whole, from zero to the same bright value."""
    if numbers.shape[1] < 36 or np.isnan(numbers).any():
        return False
    brightest = numbers.max(axis=0)
    same = (brightest == brightest.max()).mean()
    return bool(numbers.min() == 0 and same > 0.3 and (numbers[:100] % 1 == 0).all())


def _words(both: pd.DataFrame, columns: Columns, rows: int) -> Matrix:
    """Return weighted words and, unless there are too many rows, pieces of words."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # late: only text needs it

    text = both[list(columns.texts)].fillna("").astype(str).agg(" ".join, axis=1)
    common = {"sublinear_tf": True, "min_df": 2 if rows > 200 else 1, "dtype": np.float32}
    words = TfidfVectorizer(
        token_pattern=r"\w+|[^\w\s]", ngram_range=(1, 2), max_features=200_000, **common
    ).fit(text[:rows])
    if rows > LETTERS_UP_TO:
        return words.transform(text)
    letters = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 5), max_features=100_000, **common
    ).fit(text[:rows])
    return _sparse_beside(words.transform(text), letters.transform(text))


def _sparse_beside(left: Matrix, right: Matrix) -> Matrix:
    from scipy.sparse import csr_matrix, hstack  # late: only text needs it

    return hstack([left, csr_matrix(right)]).tocsr()


def _topics(words: Matrix, rows: int, seed: int) -> np.ndarray:
    from sklearn.decomposition import TruncatedSVD  # late: only text needs it

    size = min(TOPICS, min(words.shape) - 1)
    reduce = TruncatedSVD(size, random_state=seed).fit(words[:rows])
    return np.asarray(reduce.transform(words))
