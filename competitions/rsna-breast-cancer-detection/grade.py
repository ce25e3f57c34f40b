"""The F1 score with predictions, cut to the range from 0 to 1, in the place of counts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pytest_mlebench import InvalidSubmission


def check(submission: pd.DataFrame) -> None:
    """Refuse a file of negative numbers, of which nothing is left in the range."""
    highest = submission["cancer"].max()
    if highest < 0:
        raise InvalidSubmission(
            f"all predictions are negative, the highest is {highest:g}; give probabilities"
        )


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the probabilistic F1 score, 0 if nothing is found."""
    predicted = np.clip(submission["cancer"].to_numpy(), 0, 1)
    cancer = answers["cancer"].to_numpy() == 1
    found = predicted[cancer].sum()
    if found == 0:
        return 0.0
    precision, recall = found / predicted.sum(), found / cancer.sum()
    return float(2 * precision * recall / (precision + recall))
