"""The edit distance between predicted and true lists of gestures, for each true gesture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench import InvalidSubmission
from pytest_mlebench.grading.metrics.text import edit_distances
from pytest_mlebench.grading.tokens import as_texts, number_portions, whole_numbers

GRADE_CHECKS = True
LARGE = 2**61  # no gesture has such a number

Array = np.ndarray[Any, np.dtype[Any]]


def check(submission: pd.DataFrame) -> None:
    """Refuse what is not a list of whole numbers."""
    _spelled(submission, np.empty(0, dtype=np.int64))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the total distance divided by the total number of true gestures."""
    truth = whole_numbers(as_texts(answers["Sequence"]), LARGE, _refusal(answers))
    known = np.unique(truth.values)
    distances = edit_distances(_spelled(answers, known), _spelled(submission, known))
    return float(distances.sum() / len(truth.values))


def _refusal(table: pd.DataFrame) -> Callable[[int], Exception]:
    def refuse(row: int) -> Exception:
        text = str(table["Sequence"].iloc[row])
        shown = text if len(text) <= 40 else f"{text[:37]}…"
        return InvalidSubmission(
            f"column 'Sequence' must hold whole numbers separated by blanks, "
            f"given: {shown!r} for id {table['Id'].iloc[row]}"
        )

    return refuse


def _spelled(table: pd.DataFrame, known: Array) -> Array:
    """Return a text for each row with a letter for each gesture, one for all that are not known."""
    texts = np.full(len(table), "", dtype=object)
    letters = np.append(np.arange(1, len(known) + 1), 0)
    for portion, numbers in number_portions(as_texts(table["Sequence"]), LARGE, _refusal(table)):
        codes = np.searchsorted(known, numbers)
        codes[np.append(known, -LARGE)[codes] != numbers] = len(known)
        text = letters[codes].astype("<u4").tobytes().decode("utf-32-le", errors="surrogatepass")
        ends = np.cumsum(portion.counts)
        pieces = zip(ends - portion.counts, ends, strict=True)
        texts[portion.rows] += np.array([text[begin:end] for begin, end in pieces], dtype=object)
    return texts
