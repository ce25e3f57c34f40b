"""The mean absolute error over the steps in which air is breathed in."""

from __future__ import annotations

import pandas as pd

from pytest_mlebench.grading.metrics.regression import mae


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the error where the expiratory valve is closed; the other steps are not looked at."""
    scored = answers["u_out"].to_numpy() == 0
    truth, pressure = answers["pressure"].to_numpy(), submission["pressure"].to_numpy()
    return mae(truth[scored], pressure[scored])
