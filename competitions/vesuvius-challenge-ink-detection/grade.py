"""F0.5 over the pixels of a fragment, averaged over the fragments."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pytest_mlebench.grading.metrics.masks import check_masks, overlaps

GRADE_CHECKS = True
BETA_SQUARED = 0.25


def check(submission: pd.DataFrame) -> None:
    """Refuse masks that cannot be decoded."""
    check_masks(submission["Id"], submission["Predicted"])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean score of the fragments, 0 where no pixel is found."""
    pixels = answers["width"] * answers["height"]
    found = overlaps(submission["Id"], answers["Predicted"], submission["Predicted"], pixels)
    total = BETA_SQUARED * found.true + found.given
    return float(((1 + BETA_SQUARED) * found.common / np.where(total > 0, total, 1)).mean())
