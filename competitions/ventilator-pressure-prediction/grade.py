"""The mean absolute error over the steps in which air is breathed in."""

from __future__ import annotations

import pandas as pd

from pytest_mlebench.grading.metrics.regression import mae
from pytest_mlebench.grading.values import Column, convert


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the error where the expiratory valve is closed; the other steps are not looked at."""
    scored = (answers["u_out"] == 0).to_numpy()
    steps = submission[scored]
    pressure = convert(Column(steps["pressure"], steps["id"]), "number")
    return mae(answers["pressure"].to_numpy()[scored], pressure)
