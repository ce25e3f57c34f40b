"""The edit distance between predicted and true lists of gestures, for each true gesture."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from pytest_mlebench import InvalidSubmission
from pytest_mlebench.errors import GraderError
from pytest_mlebench.grading.metrics.text import edit_distances
from pytest_mlebench.grading.tokens import as_texts, number_portions, row_portions

GRADE_CHECKS = True
LARGE = 2**15  # no gesture has such a number: what is larger is cut to it
CHARS_AT_ONCE = 2**20

Refuse = Callable[[int], Exception]  # what to raise about a row


def check(submission: pd.DataFrame) -> None:
    """Refuse what is not a list of whole numbers."""
    for _ in number_portions(as_texts(submission["Sequence"]), LARGE, _refusal(submission)):
        pass


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the total distance divided by the total number of true gestures."""
    truth, given = as_texts(answers["Sequence"]), as_texts(submission["Sequence"])
    distance = gestures = 0
    for rows in row_portions(truth, given, chars=CHARS_AT_ONCE):
        true = _spelled(truth[rows], _refusal(answers, rows.start))
        all_true = "".join(true)
        if chr(LARGE) in all_true:
            raise GraderError(f"the answers are damaged: they have a gesture of {LARGE} or more")
        spelled = _spelled(given[rows], _refusal(submission, rows.start))
        distance += int(edit_distances(true, spelled).sum())
        gestures += len(all_true)
    return distance / gestures


def _refusal(table: pd.DataFrame, first: int = 0) -> Refuse:
    def refuse(number: int) -> Exception:
        row = first + number
        text = str(table["Sequence"].iloc[row])
        shown = text if len(text) <= 40 else f"{text[:37]}…"
        return InvalidSubmission(
            f"column 'Sequence' must hold whole numbers separated by blanks, "
            f"given: {shown!r} for id {table['Id'].iloc[row]}"
        )

    return refuse


def _spelled(texts: Sequence[str], refuse: Refuse) -> list[str]:
    """Return a text for each list, with a letter for each gesture."""
    spelled: list[str] = []
    for portion, numbers in number_portions(texts, LARGE, refuse):
        # Negative numbers become letters from 2**15 on, of which no gesture has one, either.
        codes = numbers.astype(np.uint16).astype("<u4")
        text = codes.tobytes().decode("utf-32-le", errors="surrogatepass")
        ends = np.cumsum(portion.counts)
        pieces = zip((ends - portion.counts).tolist(), ends.tolist(), strict=True)
        if portion.rows.start < len(spelled):  # a long list is read piece by piece
            spelled[-1] += text
        else:
            spelled += [text[begin:end] for begin, end in pieces]
    return spelled
