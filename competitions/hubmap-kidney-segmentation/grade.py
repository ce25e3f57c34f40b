"""Mean Dice coefficient of the images."""

from __future__ import annotations

import pandas as pd

from pytest_mlebench.grading.metrics.masks import check_masks, overlaps

GRADE_CHECKS = True


def check(submission: pd.DataFrame) -> None:
    """Refuse masks that cannot be decoded."""
    check_masks(submission["id"], submission["predicted"])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean over images; nothing found where nothing is counts as 1."""
    pixels = answers["width_pixels"] * answers["height_pixels"]
    found = overlaps(submission["id"], answers["encoding"], submission["predicted"], pixels)
    return float(found.dice(both_empty=1.0).mean())
