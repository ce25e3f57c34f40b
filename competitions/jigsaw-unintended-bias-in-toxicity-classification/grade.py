"""Overall AUC and generalized means of bias AUCs, all of predictions cut at one half."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

CUT = 0.5
POWER = -5

Array = np.ndarray[Any, np.dtype[Any]]


def grade(submission: pd.DataFrame, answers: pd.DataFrame, identities: list[str]) -> float:
    """Return the mean of the overall AUC and the three bias means over identities."""
    toxic = answers["toxicity"].to_numpy() >= CUT
    flagged = submission["prediction"].to_numpy() >= CUT
    everyone = np.ones(len(toxic), dtype=bool)
    bias = np.array(
        [
            [_area(toxic, flagged, rows) for rows in _subsets(toxic, mentioned)]
            for mentioned in (answers[identities] >= CUT).to_numpy().T
        ]
    )
    return float(np.mean([_area(toxic, flagged, everyone), *_power_means(bias)]))


def _subsets(toxic: Array, mentioned: Array) -> tuple[Array, Array, Array]:
    """Return the rows of the subgroup, BPSN and BNSP areas of one identity."""
    return mentioned, toxic != mentioned, toxic == mentioned


def _area(toxic: Array, flagged: Array, rows: Array) -> float:
    """Return the area under the ROC curve of yes-or-no predictions: the mean of two rates."""
    found = np.mean(flagged[rows & toxic])
    spared = np.mean(~flagged[rows & ~toxic])
    return float((found + spared) / 2)


def _power_means(areas: Array) -> Array:
    """Return the generalized mean of each column, zero where an area is zero."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.mean(areas**POWER, axis=0) ** (1 / POWER))
