"""The Kullback-Leibler divergence of predicted from given votes, averaged over windows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pytest_mlebench import InvalidSubmission
from pytest_mlebench.grading.values import Column, convert

VOTES = ["seizure_vote", "lpd_vote", "gpd_vote", "lrda_vote", "grda_vote", "other_vote"]
SUM_DIGITS = 5
ROUNDED = 0.01  # a sum that is farther from 1 was not spoilt by rounding
EPSILON = 1e-15


def check(submission: pd.DataFrame) -> None:
    """Refuse what is no probability, rows that do not sum to one, and whole numbers with zeros."""
    sums = _probabilities(submission).sum(axis=1)
    wrong = np.flatnonzero(np.round(sums, SUM_DIGITS) != 1)
    if len(wrong):
        off = np.abs(sums[wrong[0]] - 1)
        raise InvalidSubmission(
            f"the six values of a row must sum to 1 to {SUM_DIGITS} digits, but for eeg_id "
            f"{submission['eeg_id'].iloc[wrong[0]]} they sum to {sums[wrong[0]]:.8g}"
            f"{' (written with too few digits?)' if off < ROUNDED else ''}"
        )
    _refuse_hard_zeros(submission)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Return the mean over windows; classes without a vote cost nothing."""
    votes = answers[VOTES].to_numpy(dtype=np.float64)
    truth = votes / votes.sum(axis=1, keepdims=True)
    predicted = np.clip(_probabilities(submission), EPSILON, 1 - EPSILON)
    terms = truth * np.log(np.where(truth > 0, truth, 1) / predicted)
    return float(terms.sum(axis=1).mean())


def _probabilities(table: pd.DataFrame) -> np.ndarray:
    columns = [Column(table[name], table["eeg_id"], booleans=False) for name in VOTES]
    return np.column_stack([convert(column, "probability") for column in columns])


def _refuse_hard_zeros(table: pd.DataFrame) -> None:
    """Refuse 0 in a column of whole numbers: only fractions are kept away from zero."""
    for name in VOTES:
        zeros = (table[name] == 0).to_numpy()
        if pd.api.types.is_integer_dtype(table[name].dtype) and zeros.any():
            raise InvalidSubmission(
                f"column {name!r} holds whole numbers, in which 0 makes the divergence infinite, "
                f"for eeg_id {table['eeg_id'][zeros].iloc[0]}; write it with a point, as 0.0"
            )
