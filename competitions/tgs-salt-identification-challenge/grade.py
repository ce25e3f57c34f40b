"""Mean over images of the share of ten IoU thresholds that a mask exceeds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pytest_mlebench import InvalidSubmission
from pytest_mlebench.grading.metrics.masks import decode_rle, parse_runs

PIXELS = 101 * 101
THRESHOLDS = np.arange(0.5, 1.0, 0.05)


def check(submission: pd.DataFrame) -> None:
    """Refuse a column that is not text, and masks that cannot be decoded."""
    for mask in _masks(submission):
        parse_runs(mask)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean precision over images."""
    pairs = zip(_masks(answers), _masks(submission), strict=True)
    return float(np.mean([_precision(truth, mask) for truth, mask in pairs]))


def _masks(table: pd.DataFrame) -> list[str]:
    masks = table["rle_mask"].astype(object).fillna("").tolist()
    for image, mask in zip(table["id"], masks, strict=True):
        if not isinstance(mask, str):
            raise InvalidSubmission(f"the mask of id {image} is a bare number, given: {mask}")
    return masks


def _precision(truth_text: str, mask_text: str) -> float:
    truth, mask = decode_rle(truth_text, PIXELS), decode_rle(mask_text, PIXELS)
    if not truth.any():
        return float(not mask.any())
    if not mask.any():  # the reference counts an empty mask as a full one
        overlap = truth.sum() / PIXELS
    else:
        overlap = (truth & mask).sum() / (truth | mask).sum()
    return float((overlap > THRESHOLDS).mean())
