"""The one strict place: columns, ids and values of a submission, aligned with what is expected.

Metrics and graders see aligned tables and nothing else. The expected table is the answers when a
submission is scored and the public sample when only its form is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench._csv import COPIES_ON_WRITE
from pytest_mlebench.errors import GraderError, InvalidSubmission, did_you_mean
from pytest_mlebench.grading.rules import Rules
from pytest_mlebench.grading.values import Column, convert

OCCURRENCE = " occurrence"  # no column is called so
SHOWN = 3  # how many ids or columns an error names

Array = np.ndarray[Any, np.dtype[Any]]


def conform(
    submission: pd.DataFrame, expected: pd.DataFrame, rules: Rules, *, is_sample: bool = False
) -> pd.DataFrame:
    """Return the submission's ids and targets, checked, converted, in the order expected."""
    submission = _renamed(submission, rules.other_names)
    _check_columns(submission, rules)
    if submission.empty:
        raise InvalidSubmission("the submission has a header but no rows")
    if is_sample and rules.rows == "scored":
        expected = _answered(submission, expected, rules)
    positions = _positions(submission, expected, rules)
    ids = _names(expected, rules.id)
    booleans = all(submission[target].dtype == bool for target in rules.targets)
    if booleans and not rules.only_booleans:
        raise InvalidSubmission("all values are True or False, expected numbers")
    known = expected.reset_index(drop=True)
    aligned: dict[str, Any] = {column: known[column] for column in rules.id}
    for target in rules.targets:
        cells = submission[target] if positions is None else submission[target].iloc[positions]
        column = Column(cells, ids, rules.range, rules.missing, rules.booleans, rules.true)
        aligned[target] = _own(convert(column, rules.kinds[target]))
        if rules.varied:
            _check_varied(aligned[target], target)
    frame = pd.DataFrame(aligned, copy=not COPIES_ON_WRITE)
    if rules.row_sum is not None:
        _check_sums(frame[list(rules.targets)].to_numpy(), ids, rules.row_sum)
    return frame


def _own(values: Array) -> Array:
    """Return values that may be changed; pandas shows those of its own tables read-only."""
    return values if values.flags.writeable else values.copy()


def columns(aligned: pd.DataFrame, rules: Rules) -> Array:
    """Return the targets of an aligned submission: one dimension for one target."""
    values = np.asarray(aligned[list(rules.targets)])
    return values[:, 0] if len(rules.targets) == 1 else values


def truth(answers: pd.DataFrame, rules: Rules) -> Array:
    """Return the targets of the answers in the same shape and by the same rules."""
    names = rules.answers or rules.targets
    try:
        ids = _names(answers, rules.id)
        found = {
            target: convert(Column(answers[name], ids, None, rules.missing), rules.kinds[target])
            for target, name in zip(rules.targets, names, strict=True)
        }
    except (InvalidSubmission, KeyError) as error:
        raise GraderError(f"the answers are damaged: {error}") from error
    return columns(pd.DataFrame(found), rules)


def _renamed(submission: pd.DataFrame, other_names: Mapping[str, str]) -> pd.DataFrame:
    """Return the submission with targets under their first names."""
    found = {name: target for name, target in other_names.items() if name in submission.columns}
    for name, target in found.items():
        if target in submission.columns:
            raise InvalidSubmission(
                f"columns {target!r} and {name!r} are two names of one column, keep {target!r} only"
            )
    return submission.rename(columns=found) if found else submission


def _check_columns(submission: pd.DataFrame, rules: Rules) -> None:
    wanted = (*rules.id, *rules.targets)
    for column in wanted:
        if column not in submission.columns:
            near = did_you_mean(column, map(str, submission.columns))
            hint = near if near.startswith(", did") else f"; it has {_list(submission.columns)}"
            raise InvalidSubmission(f"column {column!r} is missing{hint}")
    extra = [column for column in submission.columns if column not in wanted]
    if extra and rules.extra_columns == "reject":
        raise InvalidSubmission(
            f"unexpected column {_list(extra)}; expected exactly {_list(wanted, 6)}"
        )
    if rules.extra_columns == "zeros":
        _check_zeros(submission[extra])


def _check_zeros(extra: pd.DataFrame) -> None:
    for column, cells in extra.items():
        numeric = pd.api.types.is_numeric_dtype(cells.dtype) and cells.dtype != bool
        if not numeric or (cells != 0).any():
            raise InvalidSubmission(
                f"unexpected column {column!r}: a further column counts as one more class, "
                f"leave it out or fill it with zeros"
            )


def _answered(submission: pd.DataFrame, sample: pd.DataFrame, rules: Rules) -> pd.DataFrame:
    """Return the rows of the sample that a submission answers, of which there must be some."""
    given, wanted = _keys(submission, sample, rules.id)
    known = wanted.isin(given)
    if not known.any():
        raise InvalidSubmission(f"no row has a known id, given: {_list(given)}")
    return sample[known]


def _positions(submission: pd.DataFrame, expected: pd.DataFrame, rules: Rules) -> Array | None:
    """Return which row of the submission answers each expected one; None: they stand in order."""
    given, wanted = _keys(submission, expected, rules.id)
    if given.equals(wanted):
        return None
    if (matched := _matched(given, wanted)) is not None:
        return matched
    kept = np.arange(len(given))
    if not wanted.is_unique:
        given, wanted = _numbered(given), _numbered(wanted)
    elif not given.is_unique:
        again = given.duplicated()
        repeated = given[again & (given.isin(wanted) if rules.rows == "cover" else True)]
        if len(repeated):
            raise InvalidSubmission(f"{_rows(repeated)} with an id given before: {_list(repeated)}")
        given, kept = given[~again], kept[~again]
    positions = given.get_indexer(wanted)
    if (positions < 0).any():
        lost = _unnumbered(wanted[positions < 0])
        raise InvalidSubmission(f"{_rows(lost)} missing, for id {_list(lost)}")
    if rules.rows == "exact" and len(given) > len(wanted):
        unknown = _unnumbered(given[~given.isin(wanted)])
        raise InvalidSubmission(f"{_rows(unknown)} with an unknown id: {_list(unknown)}")
    return np.asarray(kept[positions])


def _matched(given: Any, wanted: Any) -> Array | None:
    """Return the positions where the ids are the same whole numbers.

    A plain table or a sort takes less time and memory than the index that pandas would make.
    Stable sorts match the k-th occurrence of an id with the k-th. Whatever differs between the
    ids is for others to say.
    """
    if len(given) != len(wanted) or given.dtype.kind not in "iu" or wanted.dtype.kind not in "iu":
        return None
    theirs, ours = given.to_numpy(), wanted.to_numpy()
    if (found := _looked_up(theirs, ours)) is not None:
        return found
    from_theirs = np.argsort(theirs, kind="stable")
    if np.array_equal(theirs[from_theirs], ours):  # the answers are in order, as most are
        return from_theirs
    from_ours = np.argsort(ours, kind="stable")
    if not np.array_equal(theirs[from_theirs], ours[from_ours]):
        return None
    positions = np.empty_like(from_theirs)
    positions[from_ours] = from_theirs
    return positions


def _looked_up(theirs: Array, ours: Array) -> Array | None:
    """Return the positions by a table of all numbers there are, if they are dense and unique."""
    low, high = int(ours.min()), int(ours.max())
    if high - low > 4 * len(ours) or theirs.min() < low or theirs.max() > high:
        return None
    places = np.full(high - low + 1, -1, dtype=np.int32 if len(ours) < 2**31 else np.int64)
    places[theirs - low] = np.arange(len(theirs))
    positions = places[ours - low]
    answered = np.zeros(len(theirs), dtype=bool)
    answered[positions[positions >= 0]] = True
    return positions if answered.all() else None


def _keys(submission: pd.DataFrame, expected: pd.DataFrame, ids: Sequence[str]) -> tuple[Any, Any]:
    """Return two indexes whose entries are equal where the ids are."""
    given, wanted = [], []
    for column in ids:
        theirs, ours = submission[column], expected[column]
        absent = theirs.isna()
        if absent.any() and not ours.isna().any():
            row = int(np.flatnonzero(absent)[0]) + 1
            raise InvalidSubmission(f"column {column!r} is empty in row {row}")
        given.append(_like(theirs, ours))
        wanted.append(ours)
    if len(ids) == 1:
        return pd.Index(given[0]), pd.Index(wanted[0])
    return pd.MultiIndex.from_arrays(given), pd.MultiIndex.from_arrays(wanted)


def _like(theirs: pd.Series[Any], ours: pd.Series[Any]) -> pd.Series[Any]:
    """Return ids in the type of ours where their values allow it (7, 7.0 and 0007 are one id)."""
    if theirs.dtype == ours.dtype:
        return theirs
    if not pd.api.types.is_numeric_dtype(ours):
        return theirs.astype(str)
    numbers = pd.to_numeric(theirs, errors="coerce")
    if numbers.isna().any():  # only what is no number stays as it is, and will be unknown
        return numbers.astype(object).where(numbers.notna(), theirs)
    if pd.api.types.is_integer_dtype(ours) and (numbers % 1 == 0).all():
        return numbers.astype(ours.dtype)
    return numbers


def _numbered(index: Any) -> Any:
    """Return an index in which the k-th occurrence of an id is its own."""
    frame = index.to_frame(index=False)
    count = frame.groupby(list(frame.columns), dropna=False).cumcount()
    return pd.MultiIndex.from_frame(frame.assign(**{OCCURRENCE: count}))


def _unnumbered(index: Any) -> Any:
    return index.droplevel(OCCURRENCE) if OCCURRENCE in index.names else index


def _check_varied(values: Array, target: str) -> None:
    if (values == values[0]).all():
        raise InvalidSubmission(
            f"column {target!r} is {values[0]} in every row, and a constant has no correlation"
        )


def _check_sums(values: Array, ids: pd.Series[Any], tolerance: float) -> None:
    sums = values.sum(axis=1)
    wrong = np.flatnonzero(~(np.abs(sums - 1) <= tolerance))
    if len(wrong):
        row = wrong[0]
        raise InvalidSubmission(
            f"the values of a row must sum to 1, but for id {ids.iloc[row]} they sum to "
            f"{sums[row]:.8g} ({_rows(wrong)} wrong)"
        )


def _names(frame: pd.DataFrame, ids: Sequence[str]) -> pd.Series[Any]:
    """Return something that names each row in an error."""
    if len(ids) == 1:
        return frame[ids[0]]
    return pd.Series(list(frame[list(ids)].itertuples(index=False, name=None)))


def _rows(values: Any) -> str:
    return f"{len(values)} row{'' if len(values) == 1 else 's'}"


def _list(values: Any, shown: int = SHOWN) -> str:
    first = [repr(value) if isinstance(value, str) else str(value) for value in values[:shown]]
    return ", ".join(first) + (", …" if len(values) > shown else "")
