"""The edit distance between predicted and true lists of gestures, for each true gesture."""

from __future__ import annotations

import pandas as pd

from pytest_mlebench import InvalidSubmission


def check(submission: pd.DataFrame) -> None:
    """Refuse what is not a list of whole numbers."""
    _gestures(submission)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the total distance divided by the total number of true gestures."""
    from rapidfuzz import process
    from rapidfuzz.distance import Levenshtein

    truth, predicted = _gestures(answers), _gestures(submission)
    # small codes in the place of the numbers, as the library compares by hash
    codes: dict[int, int] = {}
    coded = [
        [[codes.setdefault(gesture, len(codes)) for gesture in gestures] for gestures in lists]
        for lists in (truth, predicted)
    ]
    distances = process.cpdist(*coded, scorer=Levenshtein.distance)
    return float(distances.sum() / sum(map(len, truth)))


def _gestures(table: pd.DataFrame) -> list[list[int]]:
    texts = table["Sequence"].astype(str)
    return [_parse(text, name) for text, name in zip(texts, table["Id"], strict=True)]


def _parse(text: str, name: object) -> list[int]:
    try:
        return [int(token) for token in text.split()]
    except ValueError:
        shown = text if len(text) <= 40 else f"{text[:37]}…"
        raise InvalidSubmission(
            f"column 'Sequence' must hold whole numbers separated by blanks, "
            f"given: {shown!r} for id {name}"
        ) from None
