"""Metrics of ranked lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

Array = np.ndarray[Any, np.dtype[Any]]


def map_at_k(truth: Array, prediction: Array, k: int) -> float:
    """Return the mean average precision of the first *k* blank-separated tokens of each row.

    A token counts once, at its first place; repeated and unknown tokens use up their places.
    """
    relevant = _tokens(truth).drop_duplicates()
    ranked = _tokens(prediction, first=k)
    ranked["rank"] = ranked.groupby("row").cumcount() + 1
    hits = ranked.drop_duplicates(["row", "token"]).merge(relevant, on=["row", "token"])
    hits = hits.sort_values(["row", "rank"])
    precision = (hits.groupby("row").cumcount() + 1) / hits["rank"]
    gained = np.bincount(hits["row"], weights=precision, minlength=len(truth))
    possible = np.minimum(np.bincount(relevant["row"], minlength=len(truth)), k)
    return float(np.mean(gained / np.maximum(possible, 1)))


def _tokens(cells: Array, first: int | None = None) -> pd.DataFrame:
    """Return the tokens of all cells, one a row, split at every single blank."""
    lists = pd.Series(cells).str.split(" ", n=-1 if first is None else first)
    lists = lists.str[:first]
    exploded = lists.explode()
    return pd.DataFrame({"row": exploded.index, "token": exploded.to_numpy()})
