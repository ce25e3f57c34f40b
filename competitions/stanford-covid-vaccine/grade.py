"""The root mean squared error of three of the five columns, over the bases that were measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from pytest_mlebench.grading.metrics.regression import rmse


def grade(submission: pd.DataFrame, answers: pd.DataFrame, scored: Sequence[str]) -> float:
    """Return the mean over the scored columns; other columns and bases are not looked at."""
    kept, columns = answers["keep"].to_numpy(), list(scored)
    with np.errstate(over="ignore"):  # the square of a huge number; the score is then refused
        return rmse(answers[columns].to_numpy()[kept], submission[columns].to_numpy()[kept])
