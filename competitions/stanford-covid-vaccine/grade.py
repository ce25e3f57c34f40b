"""The root mean squared error of three of the five columns, over the bases that were measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from pytest_mlebench.grading.metrics.regression import rmse
from pytest_mlebench.grading.values import Column, convert


def grade(submission: pd.DataFrame, answers: pd.DataFrame, scored: Sequence[str]) -> float:
    """Return the mean over the scored columns; other columns and bases are not looked at."""
    kept = answers["keep"].to_numpy()
    rows = submission[kept]
    predicted = [convert(Column(rows[name], rows["id_seqpos"]), "number") for name in scored]
    truth = answers.loc[kept, list(scored)].to_numpy()
    with np.errstate(over="ignore"):  # the square of a huge number; the score is then refused
        return rmse(truth, np.column_stack(predicted))
