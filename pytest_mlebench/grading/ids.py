"""Which row of a submission answers which expected one: ids are matched, in whatever order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.errors import InvalidSubmission
from pytest_mlebench.grading.csv_layout import match_rows
from pytest_mlebench.grading.inference import is_clearly_text, number
from pytest_mlebench.grading.rules import Rules
from pytest_mlebench.grading.table import CsvTable, Table, load

OCCURRENCE = " occurrence"  # no column is called so
SHOWN = 3  # how many ids or columns an error names
SHOWN_CHARS = 60
IN_ORDER = slice(None)
LEAST_ANSWERED = 3 / 4  # whoever answers less of a sample misses, by all odds, what is scored
EXACT_FLOATS = 2**53  # below it every whole number is a float of its own

Array = np.ndarray[Any, np.dtype[Any]]


def positions(submission: Table, expected: Table, rules: Rules) -> Array | slice:
    """Return which row of the submission answers each expected one, or refuse its ids."""
    matched = _matched_bytes(submission, expected, rules)
    return _positions(submission, expected, rules) if matched is None else matched


def answered(submission: Table, sample: Table, rules: Rules) -> Array:
    """Tell which rows of the sample a submission answers."""
    given, wanted = _keys(submission, sample, rules)
    known: Array = wanted.isin(given)
    if not known.any():
        raise InvalidSubmission(f"no row has a known id, given: {listed(given)}")
    if known.mean() < LEAST_ANSWERED:
        lost = wanted[~known]
        raise InvalidSubmission(
            f"{len(lost)} of the {count_rows(wanted)} of the sample are missing, such as id "
            f"{listed(lost)}: some of them are scored"
        )
    return known


def row_names(table: Table, ids: Sequence[str]) -> pd.Series[Any]:
    """Return something that names each row in an error."""
    if len(ids) == 1:
        return table[ids[0]]
    return pd.Series(list(zip(*(table[column] for column in ids), strict=True)))


def count_rows(values: Any) -> str:
    """Return ``3 rows``."""
    return f"{len(values)} row{'' if len(values) == 1 else 's'}"


def listed(values: Any, shown: int = SHOWN) -> str:
    """Return the first few values, with a sign if there are more."""
    first = [shown_value(value) for value in values[:shown]]
    return ", ".join(first) + (", …" if len(values) > shown else "")


def shown_value(value: Any) -> str:
    """Return a value as an error shows it: a text in quotes, and not too much of it."""
    text = repr(value) if isinstance(value, str | tuple) else str(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 3]}…"


def _matched_bytes(submission: Table, expected: Table, rules: Rules) -> Array | slice | None:
    """Match texts where they are in the files; numbers take less time to parse than to compare."""
    if not isinstance(submission, CsvTable) or not isinstance(expected, CsvTable):
        return None
    if not is_clearly_text(expected.first(rules.id[0])):
        return None
    theirs, ours = submission.layout, expected.layout
    # among rows that nobody needs, one without an id would go unnoticed
    if theirs is None or ours is None or (rules.rows != "exact" and theirs.lacks(rules.id)):
        return None
    given, wanted = theirs.ids(rules.id), ours.ids(rules.id)
    if given is None or wanted is None or len(given) != len(wanted):
        return None
    if all(map(np.array_equal, given, wanted)):
        return IN_ORDER
    return match_rows(given, wanted, exact=rules.rows == "exact")


def _positions(submission: Table, expected: Table, rules: Rules) -> Array | slice:
    given, wanted = _keys(submission, expected, rules)
    if given.equals(wanted):
        return IN_ORDER
    if (matched := _matched_numbers(given, wanted)) is not None:
        return matched
    kept = np.arange(len(given))
    if not wanted.is_unique:
        if (matched := _matched_texts(given, wanted)) is not None:
            return matched
        given, wanted = _numbered(given), _numbered(wanted)
    elif not given.is_unique:
        again = given.duplicated()
        repeated = given[again & (given.isin(wanted) if rules.rows == "cover" else True)]
        if len(repeated):
            raise InvalidSubmission(
                f"{count_rows(repeated)} with an id given before: {listed(repeated)}"
            )
        given, kept = given[~again], kept[~again]
    places = given.get_indexer(wanted)
    if (places < 0).any():
        lost = _unnumbered(wanted[places < 0])
        raise InvalidSubmission(f"{count_rows(lost)} missing, for id {listed(lost)}")
    if rules.rows == "exact" and len(given) > len(wanted):
        unknown = _unnumbered(given[~given.isin(wanted)])
        raise InvalidSubmission(f"{count_rows(unknown)} with an unknown id: {listed(unknown)}")
    return np.asarray(kept[places])


def _matched_numbers(given: Any, wanted: Any) -> Array | None:
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
    places = np.empty_like(from_theirs)
    places[from_ours] = from_theirs
    return places


def _matched_texts(given: Any, wanted: Any) -> Array | None:
    """Return the positions where the same ids, some of them repeated, are texts."""
    if len(given) != len(wanted) or isinstance(wanted, pd.MultiIndex):
        return None
    codes, _ = given.append(wanted).factorize()
    return _matched_numbers(pd.Index(codes[: len(given)]), pd.Index(codes[len(given) :]))


def _looked_up(theirs: Array, ours: Array) -> Array | None:
    """Return the positions by a table of all numbers there are, if they are dense and unique."""
    low, high = int(ours.min()), int(ours.max())
    if high - low > 4 * len(ours) or theirs.min() < low or theirs.max() > high:
        return None
    places = np.full(high - low + 1, -1, dtype=np.int32 if len(ours) < 2**31 else np.int64)
    places[theirs - low] = np.arange(len(theirs))
    found = places[ours - low]
    used = np.zeros(len(theirs), dtype=bool)
    used[found[found >= 0]] = True
    return found if used.all() else None


def _keys(submission: Table, expected: Table, rules: Rules) -> tuple[Any, Any]:
    """Return two indexes whose entries are equal where the ids are."""
    for table in (submission, expected):
        load(table, (*rules.id, *rules.targets))  # all that will be needed
    pairs = []
    for column in rules.id:
        theirs, ours = submission[column], expected[column]
        if not len(theirs):
            raise InvalidSubmission("the submission has a header but no rows")
        absent = theirs.isna()
        if absent.any() and not ours.isna().any():
            row = int(np.flatnonzero(absent)[0]) + 1
            raise InvalidSubmission(f"column {column!r} is empty in row {row}")
        pairs.append(_comparable(theirs, ours))
    if len(pairs) == 1:
        return pd.Index(pairs[0][0]), pd.Index(pairs[0][1])
    given, wanted = zip(*pairs, strict=True)
    return pd.MultiIndex.from_arrays(given), pd.MultiIndex.from_arrays(wanted)


def _comparable(
    theirs: pd.Series[Any], ours: pd.Series[Any]
) -> tuple[pd.Series[Any], pd.Series[Any]]:
    """Return ids in one type where their values allow it (7, 7.0 and 0007 are one id)."""
    if theirs.dtype == ours.dtype:
        return theirs, ours
    if not pd.api.types.is_numeric_dtype(ours.dtype) or theirs.dtype == bool:
        return theirs.astype(str), ours
    if not pd.api.types.is_numeric_dtype(theirs.dtype):
        # only what is no number stays as it is, and will be unknown
        return theirs.astype(object).map(_as_number, na_action="ignore"), ours
    if theirs.dtype == np.float64 and pd.api.types.is_integer_dtype(ours.dtype):
        return _comparable_floats(theirs, ours)
    return theirs, ours


def _comparable_floats(
    theirs: pd.Series[Any], ours: pd.Series[Any]
) -> tuple[pd.Series[Any], pd.Series[Any]]:
    """Compare whole numbers that went through floats, and may have lost digits, as floats."""
    if (theirs % 1 != 0).any() or theirs.abs().max() >= 2**63:
        return theirs, ours
    if ours.abs().max() >= EXACT_FLOATS:
        rounded = ours.astype(np.float64)
        if rounded.is_unique and theirs.isin(rounded).all():
            return theirs, rounded
    return theirs.astype(ours.dtype), ours


def _as_number(cell: Any) -> Any:
    value = number(cell) if isinstance(cell, str) else cell
    return cell if value is None else value


def _numbered(index: Any) -> Any:
    """Return an index in which the k-th occurrence of an id is its own."""
    frame = index.to_frame(index=False)
    count = frame.groupby(list(frame.columns), dropna=False).cumcount()
    return pd.MultiIndex.from_frame(frame.assign(**{OCCURRENCE: count}))


def _unnumbered(index: Any) -> Any:
    return index.droplevel(OCCURRENCE) if OCCURRENCE in index.names else index
