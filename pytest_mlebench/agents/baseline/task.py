"""What is to be predicted: inferred from the columns of the tables and the sample's values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from tables import Tables

MOST_LABELS = 50  # a whole number with more values than this is a quantity

Form = Literal["number", "label", "probability", "classes"]


@dataclass(frozen=True)
class Goal:
    """One thing to learn, and the columns of the submission that it fills."""

    form: Form
    sources: tuple[str, ...]  # columns of the training table; several are one class each
    columns: tuple[str, ...]  # columns of the submission
    classes: tuple[object, ...] = ()  # as the training table has them, in the columns' order
    sure: bool = True  # a sample full of zeros leaves open whether labels or scores are meant

    def known_targets(self, train: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows have a target, and these: numbers, or positions in ``classes``."""
        values = train[self.sources[0]]
        if self.form == "number":
            target = values.to_numpy(dtype=float)
            known = np.isfinite(target)
        elif len(self.sources) == 1:
            target = pd.Index(self.classes).get_indexer(pd.Index(values))
            known = target >= 0
        else:
            target = train[list(self.sources)].to_numpy().argmax(axis=1)
            known = np.ones(len(target), dtype=bool)
        return known, target[known]

    def __str__(self) -> str:
        classes = f", {len(self.classes)} classes" if self.classes else ""
        return f"{self.form} {', '.join(self.columns)} (from {', '.join(self.sources)}{classes})"


def infer_goals(tables: Tables) -> tuple[Goal, ...]:
    """Return the goals of a competition, none where the tables do not tell."""
    train, test, sample = tables.train, tables.test, tables.sample
    wanted = tuple(name for name in sample.columns if name not in tables.ids)
    offered = tuple(name for name in train.columns if name not in (*test.columns, *tables.ids))
    if all(name in offered for name in wanted):
        if len(wanted) > 1 and _is_one_hot(train[list(wanted)]):
            return (Goal("classes", wanted, wanted, wanted),)
        return _only(_single(train[name], sample[name], name) for name in wanted)
    if len(wanted) == 1 and (name := _same_thing(wanted[0], offered)):
        return _only([_single(train[name], sample[wanted[0]], wanted[0])])
    return _only(_spread(train[name], wanted) for name in offered)[:1]


def _only(goals: Iterable[Goal | None]) -> tuple[Goal, ...]:
    return tuple(goal for goal in goals if goal is not None)


def _is_one_hot(frame: pd.DataFrame) -> bool:
    numeric = all(pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes)
    return numeric and bool(frame.isin((0, 1)).all(axis=None) and (frame.sum(axis=1) == 1).all())


def _same_thing(wanted: str, offered: tuple[str, ...]) -> str | None:
    """Return the training column that a single column of the sample stands for."""
    alike = [name for name in offered if name.lower() == wanted.lower()]
    return next(iter(alike or offered), None) if len(alike or offered) == 1 else None


def _spread(values: pd.Series, wanted: tuple[str, ...]) -> Goal | None:
    """Return the goal of a label whose values are the sample's columns, prefix or not."""
    classes = {str(value): value for value in values.dropna().unique()}
    prefix = _common_prefix(wanted)
    for names in (wanted, tuple(name.removeprefix(prefix) for name in wanted)):
        if set(classes) and set(classes) <= set(names):
            order = tuple(classes.get(name, name) for name in names)
            return Goal("classes", (str(values.name),), wanted, order)
    return None


def _common_prefix(names: tuple[str, ...]) -> str:
    low, high = min(names), max(names)
    size = next((i for i, letter in enumerate(low) if high[i : i + 1] != letter), len(low))
    return low[:size]


def _single(values: pd.Series, sample: pd.Series, column: str) -> Goal | None:
    """Return the goal of one column; none if its values are neither numbers nor labels."""
    values = values.dropna()
    classes = tuple(sorted(values.unique()))
    sources, columns = (str(values.name),), (column,)
    examples = pd.to_numeric(sample, errors="coerce")
    whole = bool((examples % 1 == 0).all()) and not sample.str.contains(".", regex=False).any()
    if not examples.notna().all() or not (_is_number(values) or len(classes) == 2):
        labels = 1 < len(classes) <= len(values) / 2
        return Goal("label", sources, columns, classes) if labels else None
    if len(classes) == 2:
        varied = whole and examples.nunique() > 1
        form: Form = "label" if varied else "probability"
        return Goal(form, sources, columns, classes, sure=varied or not whole)
    if whole and bool((values % 1 == 0).all()) and len(classes) <= MOST_LABELS:
        return Goal("label", sources, columns, classes)
    return Goal("number", sources, columns)


def _is_number(values: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(values.dtype) and values.dtype != bool)
