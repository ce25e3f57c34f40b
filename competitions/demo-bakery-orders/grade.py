"""What wrong orders cost: shortage is dearer than surplus, and every shop counts the same."""

from __future__ import annotations

import numpy as np
import pandas as pd


def grade(
    submission: pd.DataFrame, answers: pd.DataFrame, shortage: float, surplus: float
) -> float:
    """Return the mean over shops of the cost per loaf that was asked for."""
    missing = answers["loaves"].to_numpy() - submission["loaves"].to_numpy()
    cost = np.where(missing > 0, shortage * missing, -surplus * missing)
    table = pd.DataFrame({"shop": answers["shop"], "cost": cost, "loaves": answers["loaves"]})
    sums = table.groupby("shop")[["cost", "loaves"]].sum()
    return float((sums["cost"] / sums["loaves"]).mean())
