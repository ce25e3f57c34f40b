"""Log losses weighted by target and truth, normalised within each exam, averaged over exams."""

from __future__ import annotations

import numpy as np
import pandas as pd

EPSILON = 1e-15
OVERALL_WEIGHT = 7  # a vertebra has 1
FRACTURE_FACTOR = 2


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean over exams of their weighted mean loss."""
    fractured = answers["fractured"].to_numpy() == 1
    predicted = np.clip(submission["fractured"].to_numpy(), EPSILON, 1 - EPSILON)
    loss = -np.log(np.where(fractured, predicted, 1 - predicted))
    overall = answers["prediction_type"].to_numpy() == "patient_overall"
    weight = np.where(overall, OVERALL_WEIGHT, 1) * np.where(fractured, FRACTURE_FACTOR, 1)
    exam, names = pd.factorize(answers["StudyInstanceUID"])
    totals = np.bincount(exam, weight * loss, len(names)) / np.bincount(exam, weight, len(names))
    return float(totals.mean())
