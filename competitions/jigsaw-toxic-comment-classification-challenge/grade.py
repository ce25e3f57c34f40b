"""Mean over six labels of the area under the ROC curve, over the comments that are scored."""

from __future__ import annotations

import pandas as pd

from pytest_mlebench.grading.metrics.classification import roc_auc


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean area; unscored comments have -1 in all labels."""
    classes = [column for column in submission.columns if column != "id"]
    scored = answers[classes].sum(axis=1).to_numpy() >= 0
    return roc_auc(answers[classes].to_numpy()[scored], submission[classes].to_numpy()[scored])
