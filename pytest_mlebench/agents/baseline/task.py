"""What is to be predicted, told from the tables alone: names of columns and the sample's values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from columns import has_lists
from tables import Tables, is_named

MAX_LABELS = 50  # a whole number with more values than this is a quantity
MAX_CELLS = 20_000_000  # rows times classes of an estimate: rare classes are left out beyond
MAX_CLASSES = 1_000
MAX_DISTINCT = 0.9  # of the rows: where hardly a label comes twice, there is nothing to rank
MAX_REPEATS = 0.05  # of the lists may have a label twice
MIN_VARIETY = 0.3  # of the rows must differ to be sets of labels
MIN_USES = 3  # of a word in a list of labels, on average
SHOWN_NAMES = 8

Form = Literal[
    "number",
    "label",  # one of the classes
    "ranking",  # some of the classes, the likeliest first
    "set",  # any of the classes
    "probability",  # of the second of two classes
    "classes",  # the probabilities of all classes, a column for each
    "members",  # the same, where several may be right
    "shares",  # quantities that add up to one, a column for each
]


@dataclass(frozen=True)
class Goal:
    """One thing to learn, and the columns of the submission that it fills."""

    form: Form
    sources: tuple[str, ...]  # columns of the training table; several are one class each
    columns: tuple[str, ...]  # columns of the submission
    classes: tuple[object, ...] = ()  # as the training table has them, in the columns' order
    sure: bool = True  # a sample full of zeros leaves open whether labels or scores are meant
    separator: str = " "  # between the labels of a list
    size: int = 1  # of a ranking

    @property
    def is_exclusive(self) -> bool:
        """Tell whether just one of the classes is right."""
        return self.form in ("label", "ranking", "probability", "classes")

    @property
    def width(self) -> tuple[int, ...]:
        """Return how many values a row has."""
        return () if self.form == "number" else (len(self.classes),)

    @property
    def name(self) -> str:
        """Return the columns as a short text."""
        return _shortened(self.columns)

    def known_targets(self, train: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows have a target, and these: numbers, or positions in ``classes``."""
        values = train[self.sources[0]]
        if self.form == "number":
            target = values.to_numpy(dtype=float)
            known = np.isfinite(target)
        elif self.form == "shares":
            target = train[list(self.sources)].to_numpy(dtype=float)
            known = target.sum(axis=1) > 0
            target = target / np.maximum(target.sum(axis=1, keepdims=True), 1e-12)
        elif self.form in ("set", "members"):
            target, known = self._memberships(values), values.notna().to_numpy()
        elif len(self.sources) == 1:
            target = pd.Index(self.classes).get_indexer(pd.Index(values.astype(object)))
            known = target >= 0
        else:
            target = train[list(self.sources)].to_numpy().argmax(axis=1)
            known = np.ones(len(target), dtype=bool)
        return known, target[known]

    def _memberships(self, values: pd.Series) -> np.ndarray:
        places = {label: i for i, label in enumerate(self.classes)}
        target = np.zeros((len(values), len(places)))
        for row, cell in enumerate(values):
            for label in _words(cell, self.separator):
                if label in places:
                    target[row, places[label]] = 1
        return target

    def __str__(self) -> str:
        classes = f", {len(self.classes)} classes" if self.classes else ""
        return f"{self.form} {self.name} (from {_shortened(self.sources)}{classes})"


def infer_goals(tables: Tables) -> tuple[Goal, ...]:
    """Return the goals of a competition, none where the tables do not tell."""
    train, test, sample = tables.train, tables.test, tables.sample
    wanted = tuple(name for name in sample.columns if name not in tables.ids and is_named(name))
    offered = tuple(
        name
        for name in train.columns
        if name not in (*test.columns, *tables.ids) and not has_lists(train[name])
    )
    most = min(MAX_CLASSES, max(2, MAX_CELLS // (len(train) + len(test))))
    if all(name in offered for name in wanted):
        if len(wanted) > 1 and _is_one_hot(train[list(wanted)]):
            return (Goal("classes", wanted, wanted, wanted),)
        if len(wanted) > 1 and _are_shares(train[list(wanted)], sample[list(wanted)]):
            return (Goal("shares", wanted, wanted, wanted),)
        return _only(_single(train[name], sample[name], name, most) for name in wanted)
    if len(wanted) == 1 and (name := _same_thing(wanted[0], offered)):
        return _only([_single(train[name], sample[wanted[0]], wanted[0], most)])
    return _only(_spread(train[name], wanted) for name in offered)[:1]


def _shortened(names: tuple[str, ...]) -> str:
    return ", ".join(names[:SHOWN_NAMES]) + (", …" if len(names) > SHOWN_NAMES else "")


def _only(goals: Iterable[Goal | None]) -> tuple[Goal, ...]:
    return tuple(goal for goal in goals if goal is not None)


def _is_one_hot(frame: pd.DataFrame) -> bool:
    return _are_numbers(frame) and bool(
        frame.isin((0, 1)).all(axis=None) and (frame.sum(axis=1) == 1).all()
    )


def _are_shares(frame: pd.DataFrame, sample: pd.DataFrame) -> bool:
    """Tell whether the sample's rows add up to one, of quantities rather than flags."""
    sums = sample.apply(pd.to_numeric, errors="coerce").sum(axis=1)
    if not _are_numbers(frame) or not np.allclose(sums, 1):
        return False
    return bool((frame >= 0).all(axis=None) and not frame.isin((0, 1)).all(axis=None))


def _are_numbers(frame: pd.DataFrame) -> bool:
    return all(pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes)


def _same_thing(wanted: str, offered: tuple[str, ...]) -> str | None:
    """Return the training column that a single column of the sample stands for."""
    alike = [name for name in offered if name.lower() == wanted.lower()]
    return next(iter(alike or offered), None) if len(alike or offered) == 1 else None


def _spread(values: pd.Series, wanted: tuple[str, ...]) -> Goal | None:
    """Return the goal of labels that are the sample's columns, prefix or not."""
    classes = {str(value): value for value in values.dropna().unique()}
    prefix = _common_prefix(wanted)
    for names in (wanted, tuple(name.removeprefix(prefix) for name in wanted)):
        if set(classes) and set(classes) <= set(names):
            order = tuple(classes.get(name, name) for name in names)
            return Goal("classes", (str(values.name),), wanted, order)
        for separator in (",", " "):
            words = {word for value in classes for word in _words(value, separator)}
            if words and words <= set(names):
                source = (str(values.name),)
                return Goal("members", source, wanted, names, separator=separator)
    return None


def _common_prefix(names: tuple[str, ...]) -> str:
    low, high = min(names), max(names)
    size = next((i for i, letter in enumerate(low) if high[i : i + 1] != letter), len(low))
    return low[:size]


def _single(values: pd.Series, sample: pd.Series, column: str, most: int) -> Goal | None:
    """Return the goal of one column; none if its values are neither numbers nor labels."""
    values = values.dropna()
    classes = tuple(sorted(values.unique()))
    sources, columns = (str(values.name),), (column,)
    examples = pd.to_numeric(sample, errors="coerce")
    whole = bool((examples % 1 == 0).all()) and not sample.str.contains(".", regex=False).any()
    if not examples.notna().all():
        return _listed(values, sample, column, most) or _labelled(values, column, most)
    if not (_is_number(values) or len(classes) == 2):
        figures = pd.to_numeric(pd.Series(classes), errors="coerce").notna().all()
        return _labelled(values, column, most) if figures else None
    if len(classes) == 2:
        varied = whole and examples.nunique() > 1
        form: Form = "label" if varied else "probability"
        return Goal(form, sources, columns, classes, sure=varied or not whole)
    if whole and bool((values % 1 == 0).all()) and len(classes) <= MAX_LABELS:
        return Goal("label", sources, columns, classes)
    return Goal("number", sources, columns)


def _labelled(values: pd.Series, column: str, most: int) -> Goal | None:
    """Return the goal of a label, if labels repeat."""
    if not 1 < values.nunique() <= len(values) / 2:
        return None
    return Goal("label", (str(values.name),), (column,), _commonest(values, most))


def _listed(values: pd.Series, sample: pd.Series, column: str, most: int) -> Goal | None:
    """Return the goal of a list of labels: a ranking, or a set."""
    cells, source = values.astype(str), (str(values.name),)
    examples, lists = ([_words(cell, " ") for cell in column] for column in (sample, cells))
    if _repeat(examples) or _repeat(lists):
        return None
    size = len(examples[0])
    if max(map(len, lists)) == 1:
        same = size > 1 and all(len(words) == size for words in examples)
        if not same or values.nunique() > MAX_DISTINCT * len(values):
            return None
        return Goal("ranking", source, (column,), _commonest(values, most), size=size)
    counts = Counter(word for words in lists for word in words)
    known = [word in counts for words in examples for word in words]
    # combinations that repeat are learnt better as they are: each is a label
    if values.nunique() <= max(MAX_LABELS, MIN_VARIETY * len(values)):
        return None
    if sum(known) < max(len(known) / 2, 1) or counts.total() < MIN_USES * len(counts):
        return None
    classes = tuple(sorted(word for word, _ in counts.most_common(most)))
    return Goal("set", source, (column,), classes)


def _repeat(lists: list[list[str]]) -> bool:
    """Tell text and figures from labels, of which hardly a list has one twice."""
    return sum(len(set(words)) < len(words) for words in lists) > MAX_REPEATS * len(lists)


def _words(cell: object, separator: str) -> list[str]:
    return [word for word in cell.split(separator) if word] if isinstance(cell, str) else []


def _commonest(values: pd.Series, most: int) -> tuple[object, ...]:
    return tuple(sorted(values.astype(object).value_counts().index[:most]))


def _is_number(values: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(values.dtype) and values.dtype != bool)
