"""Mean over images of the share of ten IoU thresholds that a mask exceeds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pytest_mlebench.grading.metrics.masks import Runs, read_masks, true_masks

PIXELS = 101 * 101
THRESHOLDS = np.arange(0.5, 1.0, 0.05)


def check(submission: pd.DataFrame) -> None:
    """Refuse masks that cannot be decoded."""
    read_masks(submission["id"], submission["rle_mask"])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean precision over images."""
    truths = true_masks(answers["id"], answers["rle_mask"])
    masks = read_masks(submission["id"], submission["rle_mask"])
    pairs = zip(truths, masks, strict=True)
    return float(np.mean([_precision(t.within(PIXELS), m.within(PIXELS)) for t, m in pairs]))


def _precision(truth: Runs, mask: Runs) -> float:
    if not truth.size:
        return float(not mask.size)
    if not mask.size:  # the reference counts an empty mask as a full one
        overlap = truth.size / PIXELS
    else:
        common = truth.common(mask)
        overlap = common / (truth.size + mask.size - common)
    return float((overlap > THRESHOLDS).mean())
