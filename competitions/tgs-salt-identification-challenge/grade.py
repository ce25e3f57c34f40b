"""Mean over images of the share of ten IoU thresholds that a mask exceeds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pytest_mlebench.grading.metrics.masks import check_masks, overlaps

GRADE_CHECKS = True
PIXELS = 101 * 101
THRESHOLDS = np.arange(0.5, 1.0, 0.05)


def check(submission: pd.DataFrame) -> None:
    """Refuse masks that cannot be decoded."""
    check_masks(submission["id"], submission["rle_mask"])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean precision over images."""
    found = overlaps(submission["id"], answers["rle_mask"], submission["rle_mask"], PIXELS)
    share = found.common / np.maximum(found.true + found.given - found.common, 1)
    # the reference counts an empty mask as a full one
    share = np.where(found.given > 0, share, found.true / PIXELS)
    precision = (share[:, None] > THRESHOLDS).mean(axis=1)
    return float(np.where(found.true > 0, precision, found.given == 0).mean())
