"""Mean Dice coefficient of the images."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pytest_mlebench.grading.metrics.masks import dice, read_masks, true_masks


def check(submission: pd.DataFrame) -> None:
    """Refuse masks that cannot be decoded."""
    read_masks(submission["id"], submission["predicted"])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean over images; nothing found where nothing is counts as 1."""
    truths = true_masks(answers["id"], answers["encoding"])
    masks = read_masks(submission["id"], submission["predicted"])
    sizes = answers["width_pixels"] * answers["height_pixels"]
    scores = [
        dice(truth.within(pixels), mask.within(pixels), both_empty=1.0)
        for truth, mask, pixels in zip(truths, masks, sizes, strict=True)
    ]
    return float(np.mean(scores))
