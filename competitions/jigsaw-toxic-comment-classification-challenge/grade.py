"""Mean over six labels of the area under the ROC curve, over the comments that are scored."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pytest_mlebench.errors import InvalidSubmission
from pytest_mlebench.grading.metrics.classification import roc_auc


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean area; unscored comments have -1 in all labels."""
    classes = [column for column in submission.columns if column != "id"]
    scored = answers[classes].sum(axis=1).to_numpy() >= 0
    given = submission[scored]
    for column in classes:
        infinite = given[np.isinf(given[column])]
        if len(infinite):
            row = infinite.iloc[0]
            raise InvalidSubmission(
                f"column {column!r} must hold a finite number, "
                f"given: {row[column]} for id {row['id']}"
            )
    return roc_auc(answers.loc[scored, classes].to_numpy(), given[classes].to_numpy())
