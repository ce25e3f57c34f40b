"""The one strict place: columns, ids and values of a submission, aligned with what is expected.

Metrics and graders see aligned tables and nothing else. The expected table is the answers when a
submission is scored and the public sample when only its form is checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench._csv import COPIES_ON_WRITE
from pytest_mlebench.errors import GraderError, InvalidSubmission, did_you_mean
from pytest_mlebench.grading.ids import answered, count_rows, listed, positions, row_names
from pytest_mlebench.grading.rules import Rules
from pytest_mlebench.grading.table import Table, load
from pytest_mlebench.grading.values import Column, convert

ROUNDED = 0.01  # a sum that is farther from 1 was not spoilt by rounding

Array = np.ndarray[Any, np.dtype[Any]]


class RowNames:
    """The ids of a table, read only if there is a row to name."""

    def __init__(self, table: Table, ids: tuple[str, ...]) -> None:
        self._table = table
        self._ids = ids

    @cached_property
    def iloc(self) -> Any:
        """Return the ids by row."""
        return row_names(self._table, self._ids).iloc


def conform(
    submission: Table,
    expected: Table,
    rules: Rules,
    *,
    is_sample: bool = False,
    with_ids: bool = True,
) -> pd.DataFrame:
    """Return the submission's ids and targets, checked, converted, in the order expected."""
    names = _renamed(submission, rules)
    _check_columns(submission, names, rules)
    if is_sample and rules.rows == "scored":
        rows = answered(submission, expected, rules)
        expected = pd.DataFrame({column: expected[column][rows] for column in rules.id})
    order = positions(submission, expected, rules)
    load(submission, names.values())
    cells = {target: submission[name].iloc[order] for target, name in names.items()}
    if not rules.only_booleans and all(each.dtype == bool for each in cells.values()):
        raise InvalidSubmission("all values are True or False, expected numbers")
    ids = RowNames(expected, rules.id)
    values = {}
    for target in rules.targets:
        written = cells.pop(target).rename(target)
        column = Column(written, ids, rules.range, rules.missing, rules.booleans, rules.true)
        values[target] = _own(convert(column, rules.kinds[target]))
        if rules.varied:
            _check_varied(values[target], target)
    known = {column: expected[column].reset_index(drop=True) for column in rules.id if with_ids}
    frame = pd.DataFrame(known | values, copy=not COPIES_ON_WRITE)
    if rules.row_sum is not None:
        _check_sums(sum(values.values()), ids, rules.row_sum)
    return frame


def _own(values: Array) -> Array:
    """Return values that may be changed; pandas shows those of its own tables read-only."""
    return values if values.flags.writeable else values.copy()


def columns(aligned: pd.DataFrame, rules: Rules) -> Array:
    """Return the targets of an aligned submission: one dimension for one target."""
    values = np.asarray(aligned[list(rules.targets)])
    return values[:, 0] if len(rules.targets) == 1 else values


def truth(answers: Table, rules: Rules) -> Array:
    """Return the targets of the answers in the same shape and by the same rules."""
    try:
        load(answers, rules.targets)
        ids = RowNames(answers, rules.id)
        found = {
            target: convert(Column(answers[target], ids, None, rules.missing), rules.kinds[target])
            for target in rules.targets
        }
    except (InvalidSubmission, KeyError) as error:
        raise GraderError(f"the answers are damaged: {error}") from error
    return columns(pd.DataFrame(found), rules)


def _renamed(submission: Table, rules: Rules) -> dict[str, str]:
    """Return the name that each target has in the submission."""
    names = {target: target for target in rules.targets}
    for name, target in rules.other_names.items():
        if name not in submission.columns:
            continue
        if target in submission.columns:
            raise InvalidSubmission(
                f"columns {target!r} and {name!r} are two names of one column, keep {target!r} only"
            )
        names[target] = name
    return names


def _check_columns(submission: Table, names: Mapping[str, str], rules: Rules) -> None:
    wanted = (*rules.id, *names.values())
    for column in wanted:
        if column not in submission.columns:
            near = did_you_mean(column, map(str, submission.columns))
            hint = near if near.startswith(", did") else f"; it has {listed(submission.columns)}"
            raise InvalidSubmission(f"column {column!r} is missing{hint}")
    extra = [column for column in submission.columns if column not in wanted]
    if extra and rules.extra_columns == "reject":
        raise InvalidSubmission(
            f"unexpected column {listed(extra)}; expected exactly {listed(wanted, 6)}"
        )
    if rules.extra_columns == "zeros":
        for column in extra:
            _check_zeros(submission[column])


def _check_zeros(cells: pd.Series[Any]) -> None:
    """Refuse a further column unless it is empty or holds zeros."""
    numeric = pd.api.types.is_numeric_dtype(cells.dtype) and cells.dtype != bool
    if not numeric or (cells.fillna(0) != 0).any():
        raise InvalidSubmission(
            f"unexpected column {str(cells.name)!r}: a further column counts as one more class, "
            f"leave it out or fill it with zeros"
        )


def _check_varied(values: Array, target: str) -> None:
    if (values == values[0]).all():
        raise InvalidSubmission(
            f"column {target!r} is {values[0]} in every row, and a constant has no correlation"
        )


def _check_sums(sums: Any, ids: RowNames, tolerance: float) -> None:
    wrong = np.flatnonzero(~(np.abs(sums - 1) <= tolerance))
    if len(wrong):
        row = wrong[0]
        hint = ", written with too few digits?" if np.abs(sums[wrong] - 1).max() < ROUNDED else ""
        raise InvalidSubmission(
            f"the values of a row must sum to 1, but for id {ids.iloc[row]} they sum to "
            f"{sums[row]:.8g} ({count_rows(wrong)} wrong{hint})"
        )
