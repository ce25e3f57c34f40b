"""The submission: the sample, filled in with estimates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from tables import Tables
from task import Goal


class Submission:
    """A table like the sample whose columns are replaced as estimates come in."""

    def __init__(self, sample: pd.DataFrame, file: Path) -> None:
        self.table = sample.copy()
        self.file = file

    def fill(self, goal: Goal, estimates: np.ndarray, places: np.ndarray) -> None:
        """Fill the goal's columns; *places* tell whose estimate each row of the sample gets."""
        for column, values in _columns(goal, estimates).items():
            self.table[column] = values[places]

    def save(self) -> None:
        """Write the file: all of it, or nothing."""
        temporary = self.file.with_suffix(".part")
        self.table.to_csv(temporary, index=False)
        temporary.replace(self.file)


def places_of(tables: Tables) -> np.ndarray | None:
    """Return for each row of the sample the number of the test row that it means, if known."""
    sample, test, name = tables.sample, tables.test, tables.ids[0]
    if name in test and test[name].is_unique:
        places = pd.Index(test[name]).get_indexer(sample[name])
        return places if (places >= 0).all() else None
    return np.arange(len(sample)) if len(sample) == len(test) else None


def _columns(goal: Goal, values: np.ndarray) -> Mapping[str, np.ndarray]:
    if goal.form == "classes":
        return {column: values[:, i] for i, column in enumerate(goal.columns)}
    if goal.form == "probability":
        return {goal.columns[0]: values[:, 1]}
    if goal.form == "label":
        return {goal.columns[0]: np.array(goal.classes)[values.argmax(axis=1)]}
    return {goal.columns[0]: values}
