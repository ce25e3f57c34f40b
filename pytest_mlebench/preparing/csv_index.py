"""Where the rows of a large csv file are, and which of them can be copied as they are.

The file is read once, some megabytes at a time, on all cores. Everything that could make a part
mean something else than it does within the whole file (quotes within a cell, carriage returns that
end no line, empty lines) is looked for, and such a file is not indexed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pytest_mlebench.host.crew import Call, Crew
from pytest_mlebench.preparing.csv_examine import CsvLook, Kept, PartFacts, examine
from pytest_mlebench.preparing.csv_source import Array, CsvSource, Part, Types, cut

KNOWN = {"int64", "float64", "bool", "string"}  # kinds of columns that parts can have
LIKE_TEXTS = {*KNOWN, "boolean"}  # kinds that a part of a column of texts can seem to have


@dataclass(frozen=True)
class Index:
    """Where each row of a file begins, and which rows a prepared file has in another form."""

    source: CsvSource
    parts: tuple[Part, ...]
    starts: Array  # one more than there are rows: the end of the last one
    changed: Array | None  # the new length of a row that changes, else zero
    copied: bool  # it is known which rows change
    kept: dict[str, pd.Series[Any]]  # columns

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def mean_length(self) -> float:
        """Return how many bytes a row has in the mean."""
        return float(self.starts[-1] - self.starts[0]) / len(self)

    def places(self, rows: Array) -> tuple[Array, Array]:
        """Return where some rows begin, and how long they are."""
        starts = self.starts[rows]
        return starts, (self.starts[rows + 1] - starts).astype(np.uint32)


def build_index(crew: Crew, path: Path, types: Types, look: CsvLook) -> Index | None:
    """Return the index of a csv file, or none if it has to be read as a whole."""
    # not the names of types: pandas would search for their meanings again and again
    types = {name: each if each is str else np.dtype(each) for name, each in types.items()}
    source = CsvSource.of(path, types)
    if source is None or not set(look.kept) <= set(source.columns):
        return None
    first = next(cut(source), None)
    known = examine(first, look) if first is not None else None
    if known is None:
        return None
    parts, facts = _examined(crew, cut(source), replace(look, texts=_texts(known)))
    final = _types(facts, types)
    if final is None:
        return None
    source = replace(source, types=final)
    parts = [replace(part, source=source) for part in parts]
    # What looked like whole numbers in one part may be decimals in another, and so on.
    other = [n for n, each in enumerate(facts) if _types([each], types) != final]
    texts = frozenset(name for name, each in final.items() if each is object)
    _, again = _examined(crew, (parts[n] for n in other), replace(look, texts=texts))
    if len(again) < len(other):
        return None
    for number, found in zip(other, again, strict=True):
        facts[number] = found
    kept = {name: joined_column(name, [each.kept[name] for each in facts]) for name in look.kept}
    return Index(source, tuple(parts), _starts(source, facts), _changed(facts), look.copied, kept)


def joined_column(name: str, parts: Iterable[Kept]) -> pd.Series[Any]:
    """Return a column from its parts; equal texts are in memory once."""
    known: dict[Any, int] = {}
    columns = []
    for values, texts in parts:
        if texts is not None:
            numbers = [known.setdefault(text, len(known)) for text in texts]
            columns.append(np.array(numbers, dtype=np.int64)[values])
        else:
            columns.append(values)
    column = np.concatenate(columns)
    if not known:
        return pd.Series(column, name=name)
    return pd.Series(np.array([*known], dtype=object)[column], name=name, dtype=object)


def _examined(
    crew: Crew, parts: Iterable[Part], look: CsvLook
) -> tuple[list[Part], list[PartFacts]]:
    """Return parts and their facts; none at all if one is not regular."""
    noted: list[Part] = []
    facts: list[PartFacts] = []

    def calls() -> Iterator[Call]:
        for part in parts:
            noted.append(part)
            yield partial(examine, part, look)

    for found in crew.map(calls()):
        if found is None:
            return [], []
        facts.append(found)
    return noted, facts


def _starts(source: CsvSource, facts: list[PartFacts]) -> Array:
    starts = np.empty(1 + sum(len(each.lengths) for each in facts), dtype=np.int64)
    starts[0] = len(source.header)
    np.concatenate([each.lengths for each in facts], out=starts[1:])
    return np.cumsum(starts, out=starts)


def _texts(facts: PartFacts) -> frozenset[str]:
    return frozenset(name for name, each in facts.kinds.items() if each == "string")


def _types(facts: list[PartFacts], types: Types) -> Types | None:
    """Return the types of the columns by their kinds in the parts; none if only the whole tells."""
    found: Types = {}
    for name in facts[0].kinds if facts else ():
        union = _union({each.kinds[name] for each in facts})
        seen = types.get(name, union)
        if seen is None:
            return None
        found[name] = seen
    return found or None


def _union(kinds: set[str]) -> Any:
    if "string" in kinds and kinds <= LIKE_TEXTS:
        return object
    if len(kinds) == 1 and kinds <= KNOWN:
        return np.dtype(next(iter(kinds)))
    return np.dtype("float64") if kinds <= {"int64", "float64"} else None


def _changed(facts: list[PartFacts]) -> Array | None:
    if all(each.changed is None for each in facts):
        return None
    unchanged = (np.zeros(len(each.lengths), dtype=np.uint32) for each in facts)
    pairs = zip(facts, unchanged, strict=True)
    return np.concatenate([no if each.changed is None else each.changed for each, no in pairs])
