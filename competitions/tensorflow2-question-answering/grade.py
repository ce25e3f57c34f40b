"""The share of rows that are right: a true answer, or a blank where there is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench import InvalidSubmission

Answer = str | tuple[int, int]


def read_answers(private: Path) -> pd.DataFrame:
    """Return for each row the set of its right answers, which may be empty."""
    with (private / "test.jsonl").open(encoding="utf-8") as lines:
        rows = [row for line in lines for row in _right(json.loads(line))]
    return pd.DataFrame(rows, columns=["example_id", "right"])


def check(submission: pd.DataFrame) -> None:
    """Refuse what is neither blank, YES, NO nor a pair of token numbers."""
    _parsed(submission)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the share of right rows, which is what micro-averaging over both outcomes gives."""
    pairs = zip(_parsed(submission), answers["right"], strict=True)
    return float(np.mean([given in right if given else not right for given, right in pairs]))


def _right(record: dict[str, Any]) -> Iterator[tuple[str, set[Answer]]]:
    annotation = record["annotations"][0]
    long, yes_no = annotation["long_answer"], annotation["yes_no_answer"]
    short: set[Answer] = {_pair(answer) for answer in annotation["short_answers"]}
    yield f"{record['example_id']}_short", short if yes_no == "NONE" else {*short, yes_no}
    yield f"{record['example_id']}_long", set() if long["start_token"] == -1 else {_pair(long)}


def _pair(answer: dict[str, int]) -> tuple[int, int]:
    return answer["start_token"], answer["end_token"]


def _parsed(submission: pd.DataFrame) -> list[Answer]:
    """Return the predictions: a pair of numbers, YES, NO or nothing."""
    rows = zip(submission["example_id"], submission["PredictionString"], strict=True)
    return [_answer(text.strip(), name) for name, text in rows]


def _answer(text: str, name: str) -> Answer:
    if text in ("", "YES", "NO"):
        return text
    parts = text.split(":")
    if len(parts) == 2:
        try:
            return int(parts[0]), int(parts[1])
        except ValueError:  # not numbers, or of thousands of digits
            pass
    shown = text if len(text) <= 60 else f"{text[:57]}…"
    raise InvalidSubmission(
        f"column 'PredictionString' must hold start:end in whole numbers, YES, NO or nothing, "
        f"given: {shown!r} for id {name}"
    )
