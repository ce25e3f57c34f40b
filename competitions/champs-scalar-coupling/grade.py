"""The mean over coupling types of the logarithm of a type's mean absolute error."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pytest_mlebench import InvalidSubmission

TARGET = "scalar_coupling_constant"
# A perfect submission has no logarithm: it gets that of the smallest number above zero, which no
# other submission can beat.
PERFECT = float(np.log(np.nextafter(0.0, 1.0)))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean of the logarithms; each type weighs the same."""
    errors = (submission[TARGET] - answers[TARGET]).abs()
    if not errors.any():
        return PERFECT
    by_type = errors.groupby(answers["type"].to_numpy()).mean()
    if (by_type == 0).any():
        raise InvalidSubmission(
            f"all predictions of type {by_type.idxmin()!r} are exact and others are not, "
            f"the logarithm of a mean error of zero is not defined"
        )
    return float(np.log(by_type).mean())
