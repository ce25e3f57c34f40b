"""F0.5 over the pixels of a fragment, averaged over the fragments."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pytest_mlebench.grading.metrics.masks import Runs, read_masks, true_masks

BETA_SQUARED = 0.25


def check(submission: pd.DataFrame) -> None:
    """Refuse masks that cannot be decoded."""
    read_masks(submission["Id"], submission["Predicted"])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean score of the fragments."""
    truths = true_masks(answers["Id"], answers["Predicted"])
    masks = read_masks(submission["Id"], submission["Predicted"])
    sizes = answers["width"] * answers["height"]
    scores = [
        _f_beta(truth.within(pixels), mask.within(pixels))
        for truth, mask, pixels in zip(truths, masks, sizes, strict=True)
    ]
    return float(np.mean(scores))


def _f_beta(truth: Runs, mask: Runs) -> float:
    hits = truth.common(mask)
    total = BETA_SQUARED * truth.size + mask.size
    return (1 + BETA_SQUARED) * hits / total if hits else 0.0
