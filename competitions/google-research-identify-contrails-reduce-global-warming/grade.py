"""Dice coefficient over all pixels of all records together."""

from __future__ import annotations

import math

import pandas as pd

from pytest_mlebench.grading.metrics.masks import Runs, read_masks, true_masks

EMPTY = "-"


def check(submission: pd.DataFrame) -> None:
    """Refuse masks that cannot be decoded."""
    _masks(submission)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return twice the common pixels over the sum of the sizes; not defined without any pixel."""
    truths = true_masks(answers["record_id"], answers["encoded_pixels"], EMPTY)
    common = total = 0
    sizes = answers["height"] * answers["width"]
    for truth, mask, pixels in zip(truths, _masks(submission), sizes, strict=True):
        inside = mask.within(pixels)
        common += truth.common(inside)
        total += truth.size + inside.size
    return 2 * common / total if total else math.nan


def _masks(submission: pd.DataFrame) -> list[Runs]:
    return read_masks(submission["record_id"], submission["encoded_pixels"], EMPTY)
