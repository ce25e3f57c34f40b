"""The edit distance between predicted and true lists of gestures, for each true gesture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench import InvalidSubmission
from pytest_mlebench.grading.metrics.text import edit_distances
from pytest_mlebench.grading.tokens import Lists, whole_numbers

GRADE_CHECKS = True
LARGE = 2**61  # no gesture has such a number

Array = np.ndarray[Any, np.dtype[Any]]


def check(submission: pd.DataFrame) -> None:
    """Refuse what is not a list of whole numbers."""
    _gestures(submission)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the total distance divided by the total number of true gestures."""
    truth, predicted = _gestures(answers), _gestures(submission)
    known = np.unique(truth.values)
    distances = edit_distances(_as_texts(truth, known), _as_texts(predicted, known))
    return float(distances.sum() / len(truth.values))


def _gestures(table: pd.DataFrame) -> Lists:
    texts = table["Sequence"].astype(str).tolist()

    def refuse(row: int) -> Exception:
        shown = texts[row] if len(texts[row]) <= 40 else f"{texts[row][:37]}…"
        return InvalidSubmission(
            f"column 'Sequence' must hold whole numbers separated by blanks, "
            f"given: {shown!r} for id {table['Id'].iloc[row]}"
        )

    return whole_numbers(texts, LARGE, refuse)


def _as_texts(gestures: Lists, known: Array) -> Array:
    """Return a text for each row with a letter for each gesture, one for all that are not known."""
    codes = np.searchsorted(known, gestures.values)
    is_known = known[np.minimum(codes, len(known) - 1)] == gestures.values
    letters = np.where(is_known, codes + 1, 0).astype("<u4")
    text = letters.tobytes().decode("utf-32-le", errors="surrogatepass")
    ends = np.cumsum(gestures.counts)
    rows = zip(ends - gestures.counts, ends, strict=True)
    return np.array([text[begin:end] for begin, end in rows], dtype=object)
