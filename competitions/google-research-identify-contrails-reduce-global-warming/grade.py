"""Dice coefficient over all pixels of all records together."""

from __future__ import annotations

import math

import pandas as pd

from pytest_mlebench.grading.metrics.masks import check_masks, overlaps

GRADE_CHECKS = True
ID, MASK = "record_id", "encoded_pixels"
EMPTY = "-"


def check(submission: pd.DataFrame) -> None:
    """Refuse masks that cannot be decoded."""
    check_masks(submission[ID], submission[MASK], EMPTY)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return twice the common pixels over the sum of the sizes; not defined without any pixel."""
    pixels = answers["height"] * answers["width"]
    found = overlaps(submission[ID], answers[MASK], submission[MASK], pixels, EMPTY)
    total = int(found.true.sum() + found.given.sum())
    return 2 * int(found.common.sum()) / total if total else math.nan
