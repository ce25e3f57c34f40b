"""Which rows of a part of a csv file a prepared file has in just the same form.

The part is parsed and written again, and what comes out is compared with what was there. Of a part
without quotes, long texts need not be parsed: they are what is between two commas, and are written
as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench._csv import kind
from pytest_mlebench.preparing.csv_columns import fast_text
from pytest_mlebench.preparing.csv_parts import table_text
from pytest_mlebench.preparing.csv_source import (
    Array,
    Part,
    cell_count,
    cell_ends,
    row_ends,
    row_lengths,
    windows,
)
from pytest_mlebench.preparing.csv_text import EMPTY, NotProven, Style

Kept = tuple[Array, list[Any] | None]  # values, or numbers and the texts that these stand for

MAX_MISSING_BYTES = 8  # of a text that pandas takes for a missing value: "#N/A N/A", "-1.#QNAN"


@dataclass(frozen=True)
class CsvLook:
    """What is to be found out: which rows change, if some are copied; values of some columns."""

    copied: bool = True
    kept: tuple[str, ...] = ()
    texts: frozenset[str] = frozenset()  # columns that are known from other parts to be texts


@dataclass(frozen=True)
class PartFacts:
    """The lengths of the rows of a part, the kinds of its columns, and which rows change."""

    lengths: Array
    kinds: dict[str, str]
    changed: Array | None = None  # the new length of a row that changes, else zero
    kept: dict[str, Kept] = field(default_factory=dict)


def examine(part: Part, look: CsvLook) -> PartFacts | None:
    """Return the facts of a part, or none if it is not as regular as it must be."""
    rows = part.read()
    lengths = row_lengths(rows)
    if lengths is None:
        return None
    try:
        if look.copied:
            facts = _examine_plain(part, rows, lengths, look.texts)
            facts = facts or _examine_all(part, rows, lengths)
        elif b'"' not in rows and part.source.types.keys() >= set(part.source.columns):
            facts = PartFacts(lengths, dict.fromkeys(part.source.columns, ""))  # no more to know
        else:
            facts = _parsed(part, rows, lengths)[1]
        if facts is None or not look.kept:
            return facts
        return replace(facts, kept=read_columns(part, rows, look.kept))
    except Exception:  # whatever it is: reading the file as a whole says it with the right line
        return None


def read_columns(part: Part, rows: bytes, names: Sequence[str]) -> dict[str, Kept]:
    """Return columns: their values, or numbers and the texts that these stand for."""
    table = part.source.parse(rows, usecols=list(names))
    found: dict[str, Kept] = {}
    for name in names:
        if table[name].dtype == object:
            codes, texts = pd.factorize(table[name], use_na_sentinel=False)
            found[name] = (codes.astype(np.int32), texts.tolist())
        else:
            found[name] = (table[name].to_numpy(), None)
    return found


def _examine_all(part: Part, rows: bytes, lengths: Array) -> PartFacts | None:
    table, facts = _parsed(part, rows, lengths)
    if facts is None:
        return None
    text = table_text(table, {"index": False})
    return facts if text == rows else replace(facts, changed=_changes(rows, lengths, text))


def _parsed(part: Part, rows: bytes, lengths: Array) -> tuple[pd.DataFrame, PartFacts | None]:
    """Return a part as a table with its facts, or no facts if the table is not made of its rows."""
    if cell_count(rows[: lengths[0]]) > len(part.source.columns):
        return pd.DataFrame(), None  # pandas would take the first cells for names of the rows
    table = part.source.parse(rows)
    if len(table) != len(lengths):
        return table, None
    return table, PartFacts(lengths, {str(name): _kind(each) for name, each in table.items()})


def _examine_plain(
    part: Part, rows: bytes, lengths: Array, texts: frozenset[str]
) -> PartFacts | None:
    """Examine a part without quotes, but for its long texts; none if that is not possible."""
    is_plain = b'"' not in rows and b"\r" not in rows
    ends = cell_ends(rows, lengths) if texts and is_plain else None
    names = part.source.columns
    if ends is None or not 1 < len(names) == ends.shape[1]:
        return None
    begins = np.column_stack([np.cumsum(lengths, dtype=np.int64) - lengths, ends[:, :-1] + 1])
    is_parsed = [
        name not in texts or _has_short(end - begin)
        for name, begin, end in zip(names, begins.T, ends.T, strict=True)
    ]
    runs = [[n for n, _ in run] for yes, run in groupby(enumerate(is_parsed), itemgetter(1)) if yes]
    table = part.source.parse(rows, usecols=[n for run in runs for n in run])
    if runs and len(table) != len(lengths):
        return None
    growth = np.zeros((2, len(lengths)), dtype=np.int64)  # whether a row changes, by how many bytes
    for run in runs:
        cells = table.iloc[:, [table.columns.get_loc(names[n]) for n in run]]
        try:
            growth += _growth(rows, begins[:, run[0]], ends[:, run[-1]] + 1, cells)
        except NotProven:
            return None
    kinds = dict.fromkeys(names, "string")
    kinds |= {str(name): _kind(column) for name, column in table.items()}
    changed = np.where(growth[0], lengths + growth[1], 0).astype(np.uint32)
    return PartFacts(lengths, kinds, changed if growth[0].any() else None)


def _kind(column: pd.Series[Any]) -> str:
    """Return the kind of a column in a part; only the whole file tells that of huge numbers.

    pandas keeps a column as texts that has whole numbers beyond 63 bits and gaps, unless others of
    its cells are decimals.
    """
    found = kind(column)
    if found != "string":
        return found
    first = next((cell for cell in column if isinstance(cell, str) and cell), "")
    if pd.isna(pd.to_numeric(first, errors="coerce")):
        return found
    filled = column[column.notna() & (column != "")]
    return "huge" if pd.to_numeric(filled, errors="coerce").notna().all() else found


def _has_short(sizes: Array) -> bool:
    """Tell whether a cell might be one that stands for a missing value."""
    return bool(((sizes > 0) & (sizes <= MAX_MISSING_BYTES)).any())


def _growth(rows: bytes, begins: Array, ends: Array, cells: pd.DataFrame) -> Array:
    """Return for each row whether its cells are written otherwise, and how much longer."""
    sizes = ends - begins
    raw = _spans(rows, begins, sizes)
    raw[np.cumsum(sizes) - 1] = ord("\n")  # or a comma, if there are more cells
    text = fast_text(cells, Style())
    if cells.shape[1] == 1:
        text = text.replace(EMPTY, b"")  # it has quotes only where there is nothing else in a row
    new = np.frombuffer(text, np.uint8)
    if np.array_equal(raw, new):
        return np.zeros((2, len(cells)), dtype=np.int64)
    new_sizes = np.diff(np.flatnonzero(new == ord("\n")) + 1, prepend=0)
    return np.stack([_differing(raw, sizes, new, new_sizes), new_sizes - sizes])


def _spans(rows: bytes, begins: Array, sizes: Array) -> Array:
    """Return the bytes of some cells of each row."""
    widest = int(sizes.max())
    slots = windows(rows, widest)[begins].view(np.uint8).reshape(len(begins), widest)
    return np.asarray(slots[np.arange(widest) < sizes[:, None]])


def _changes(rows: bytes, lengths: Array, text: bytes) -> Array:
    """Return the new lengths of the rows that differ from what was written."""
    new_lengths = np.diff(row_ends(text), prepend=0)
    raw, new = np.frombuffer(rows, np.uint8), np.frombuffer(text, np.uint8)
    differing = _differing(raw, lengths, new, new_lengths)
    return np.where(differing, new_lengths, 0).astype(np.uint32)


def _differing(raw: Array, sizes: Array, new: Array, new_sizes: Array) -> Array:
    """Return which rows of two texts differ."""
    if len(sizes) != len(new_sizes):
        raise NotProven  # never, unless the rows are not what they seem
    as_long = sizes == new_sizes
    before, after = raw[np.repeat(as_long, sizes)], new[np.repeat(as_long, new_sizes)]
    differing = np.asarray(~as_long)
    places = np.flatnonzero(before != after)
    numbers = np.searchsorted(np.cumsum(sizes[as_long], dtype=np.int64), places, "right")
    differing[np.flatnonzero(as_long)[numbers]] = True
    return differing
