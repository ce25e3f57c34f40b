"""The submission: the sample, filled in with estimates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from estimate import Estimate
from tables import Tables
from task import Goal
from workspace import Workspace

_THRESHOLDS = (0.02, 0.05, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7)


class Submission:
    """A table like the sample whose columns are replaced as estimates come in."""

    def __init__(self, sample: pd.DataFrame, file: Path) -> None:
        self.table = sample.copy()
        self.file = file
        self._last_accepted = sample.copy()

    def fill(self, goal: Goal, best: Estimate, truth: np.ndarray, places: np.ndarray) -> None:
        """Fill the goal's columns; *places* tell whose estimate each row of the sample gets."""
        for column, values in _columns(goal, best, truth).items():
            self.table[column] = values[places]

    def replace(self, column: str, values: np.ndarray) -> None:
        """Fill one column, row by row, and write the file."""
        self.table[column] = values
        self.save()

    def save(self) -> None:
        """Write the file: all of it, or nothing."""
        temporary = self.file.with_suffix(".part")
        self.table.to_csv(temporary, index=False)
        temporary.replace(self.file)

    def settle(self, workspace: Workspace) -> bool:
        """Ask the format check about the file; where it refuses, hand in what was valid before."""
        if workspace.is_accepted():
            self._last_accepted = self.table.copy()
            return True
        self.table = self._last_accepted.copy()
        self.save()
        workspace.log("handed in again what was valid before")
        return False


def places_of(tables: Tables) -> np.ndarray | None:
    """Return for each row of the sample the number of the test row that it means, if known."""
    sample, test = tables.sample, tables.test
    for ids in (list(tables.ids[:1]), list(tables.ids)):
        if set(ids) <= set(test.columns) and not test.duplicated(ids).any():
            index = pd.MultiIndex.from_frame(test[ids])
            places = index.get_indexer(pd.MultiIndex.from_frame(sample[ids]))
            return places if (places >= 0).all() else None
    return np.arange(len(sample)) if len(sample) == len(test) else None


def best_threshold(truth: np.ndarray, values: np.ndarray) -> float:
    """Return from which value on a label belongs to a set: by the mean F1 score of the rows."""
    return max(_THRESHOLDS, key=lambda threshold: _mean_f1(truth, _members(values, threshold)))


def _mean_f1(truth: np.ndarray, members: np.ndarray) -> float:
    both = (truth * members).sum(axis=1)
    return float((2 * both / np.maximum(truth.sum(axis=1) + members.sum(axis=1), 1)).mean())


def _members(values: np.ndarray, threshold: float) -> np.ndarray:
    """Return which labels are chosen: always the likeliest."""
    likeliest = values == values.max(axis=1, keepdims=True)
    members: np.ndarray = (values >= threshold) | likeliest
    return members


def _columns(goal: Goal, best: Estimate, truth: np.ndarray) -> Mapping[str, np.ndarray]:
    values = best.test
    if goal.form == "shares":
        values = values + 1e-6  # a row of zeros has shares, too
        values = values / values.sum(axis=1, keepdims=True)
    if goal.form in ("classes", "members", "shares"):
        return {column: values[:, i] for i, column in enumerate(goal.columns)}
    return {goal.columns[0]: _cells(goal, best, truth)}


def _cells(goal: Goal, best: Estimate, truth: np.ndarray) -> np.ndarray:
    """Return what a single column gets."""
    values = best.test
    if goal.form == "probability":
        return values[:, 1]
    if goal.form == "label":
        return np.asarray(np.array(goal.classes)[values.argmax(axis=1)])
    if goal.form == "ranking":
        return _likeliest(goal, values, np.full(len(values), goal.size))
    if goal.form == "set":
        members = _members(values, best_threshold(truth, best.held_out))
        return _likeliest(goal, values, members.sum(axis=1))
    return values


def _likeliest(goal: Goal, values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return lists of labels, the likeliest first."""
    names = np.array([str(label) for label in goal.classes], dtype=object)
    orders = np.argsort(-values, axis=1, kind="stable")
    lists = [goal.separator.join(names[o[:n]]) for o, n in zip(orders, sizes, strict=True)]
    return np.array(lists, dtype=object)
