"""Lists of JSON objects as tables: a fraction of the memory, and written column by column."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Protocol

import numpy as np

from pytest_mlebench.preparing import json_text
from pytest_mlebench.preparing.number_text import Array, number_cells

WINDOW_BYTES = 1 << 20
MAX_WINDOW_BYTES = 1 << 26
BATCH_ROWS = 8192
INDENT = 4

Column = Array | list[Any]


class Irregular(Exception):
    """Records do not all have the same keys, or are not where they are expected."""


class Records(Protocol):
    """A list of objects."""

    def __len__(self) -> int: ...

    def column(self, key: str) -> Column:
        """Return the values under a key that all records have."""

    def take(self, rows: Array) -> Records:
        """Return some records in the order asked for."""

    def assign(self, **columns: Column) -> Records:
        """Return the records with other values."""

    def indented(self, depth: int) -> Iterator[bytes]:
        """Yield the list as ``json.dumps`` writes it within *depth* others, with sorted keys."""


@dataclass(frozen=True)
class RecordList:
    """Records of which each may have other keys."""

    records: list[dict[str, Any]]

    def __len__(self) -> int:
        return len(self.records)

    def column(self, key: str) -> Column:
        """Return the values under a key that all records have."""
        return [record[key] for record in self.records]

    def take(self, rows: Array) -> RecordList:
        """Return some records in the order asked for."""
        return RecordList([self.records[row] for row in rows.tolist()])

    def assign(self, **columns: Column) -> RecordList:
        """Return the records with other values."""
        rows = zip(*columns.values(), strict=True)
        new = (dict(zip(columns, row, strict=True)) for row in rows)
        pairs = zip(self.records, new, strict=True)
        return RecordList([{**record, **values} for record, values in pairs])

    def indented(self, depth: int) -> Iterator[bytes]:
        """Yield the list as ``json.dumps`` writes it within *depth* others, with sorted keys."""
        yield indented(self.records, " " * INDENT * depth).encode()


@dataclass(frozen=True)
class RecordTable:
    """Records that all have the same keys, by those; *length* is how many there are."""

    columns: Mapping[str, Column]
    length: int

    def __len__(self) -> int:
        return self.length

    def column(self, key: str) -> Column:
        """Return the values under a key."""
        return self.columns[key]

    def take(self, rows: Array) -> RecordTable:
        """Return some records in the order asked for."""
        taken = {key: _taken(column, rows) for key, column in self.columns.items()}
        return RecordTable(taken, len(rows))

    def assign(self, **columns: Column) -> RecordTable:
        """Return the records with other values."""
        return RecordTable({**self.columns, **columns}, self.length)

    def indented(self, depth: int) -> Iterator[bytes]:
        """Yield the list as ``json.dumps`` writes it within *depth* others, with sorted keys."""
        outer, inner = (" " * INDENT * level for level in (depth, depth + 1))
        for start in range(0, self.length, BATCH_ROWS):
            yield (f",\n{inner}" if start else f"[\n{inner}").encode()
            yield self._rows(slice(start, start + BATCH_ROWS), inner).encode()
        yield f"\n{outer}]".encode() if self.length else b"[]"

    def _rows(self, some: slice, indent: str) -> str:
        """Return the text of some records: values, and between them what all have in common."""
        start = f"{{\n{indent}{' ' * INDENT}"
        between, pieces = start, []
        for key, column in sorted(self.columns.items()):
            cells, quote = _cells(column[some], indent + " " * INDENT)
            pieces += [repeat(f"{between}{json.dumps(key)}: {quote}"), cells]
            between = f"{quote},{start[1:]}"
        end = f"{between.removesuffix(',' + start[1:])}\n{indent}}}"
        return f",\n{indent}".join(map("".join, zip(*pieces, repeat(end), strict=False)))


def read_tables(content: bytes, names: Iterable[str]) -> dict[str, Any]:
    """Return an object of JSON in which the lists of records under some names are tables."""
    tables: dict[str, RecordTable] = {}
    spans: list[tuple[int, int]] = []
    for name in names:
        found = re.search(rb'"%s"\s*+:\s*+\[' % re.escape(name.encode()), content)
        if found is None:
            raise Irregular
        tables[name], end = _read_table(content, found.end())
        spans.append((found.end(), end))
    rest, place = [], 0
    for start, end in sorted(spans):
        rest.append(content[place:start])
        place = end
    data = json_text.loads(b"".join([*rest, content[place:]]))
    # An empty list must be where the records were: else they were not those of that name.
    if not isinstance(data, dict) or any(data.get(name) != [] for name in tables):
        raise Irregular
    return {key: tables.get(key, value) for key, value in data.items()}


def _read_table(content: bytes, start: int) -> tuple[RecordTable, int]:
    """Return the records of a list that begins at *start*, and where they end."""
    table = _Growing()
    place, window = start, WINDOW_BYTES
    while True:
        place = _after_space(content, place)
        if content[place : place + 1] == b"]" and not len(table):
            return table.finish(), place
        records, end = _read_records(content, place, window)
        if records is None:
            window *= 2
            if window > MAX_WINDOW_BYTES:
                raise Irregular
            continue
        table.add(records)
        place = _after_space(content, end)
        if content[place : place + 1] == b"]":
            return table.finish(), place
        if content[place : place + 1] != b",":
            raise Irregular
        place += 1


def _read_records(content: bytes, start: int, window: int) -> tuple[list[Any] | None, int]:
    """Return records from *start* on, not more than fit into a window, and where they end."""
    end = content.rfind(b"}", start, start + window) + 1
    if end:
        try:
            return json_text.loads(b"[" + content[start:end] + b"]"), end
        except ValueError:
            pass  # the list ends within the window, or the brace is not the end of a record
    text = "[" + content[start : start + window].decode("utf-8", errors="ignore")
    try:
        records, length = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return None, start
    return records, start + len(text[1 : length - 1].encode())


def _after_space(content: bytes, place: int) -> int:
    while content[place : place + 1] in (b" ", b"\t", b"\n", b"\r"):
        place += 1
    return place


class _Growing:
    """A table to which records are added."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Column]] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, records: list[Any]) -> None:
        if not records:
            raise Irregular
        keys = self._parts.keys() or (records[0].keys() if isinstance(records[0], dict) else None)
        if not keys:
            raise Irregular
        if not all(isinstance(each, dict) and each.keys() == keys for each in records):
            raise Irregular
        for key in keys:
            values = [record[key] for record in records]
            self._parts.setdefault(key, []).append(_packed(values))
        self._length += len(records)

    def finish(self) -> RecordTable:
        return RecordTable({key: _together(each) for key, each in self._parts.items()}, len(self))


def _packed(values: list[Any]) -> Column:
    """Return whole numbers as an array."""
    if set(map(type, values)) == {int}:
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            pass
    return values


def _together(parts: list[Column]) -> Column:
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [
        value for part in parts for value in (part if isinstance(part, list) else part.tolist())
    ]


def _taken(column: Column, places: Array) -> Column:
    if isinstance(column, list):
        return [column[place] for place in places.tolist()]
    return np.asarray(column[places])


def _cells(column: Column, indent: str) -> tuple[list[str], str]:
    """Return the JSON text of values, and the quote that is still missing on both sides."""
    if isinstance(column, np.ndarray):
        return number_cells(column), ""
    if all(type(value) is str for value in column):
        together = "".join(column)
        plain = together.isascii() and together.isprintable()
        if plain and '"' not in together and "\\" not in together:
            return column, '"'
    return [indented(value, indent) for value in column], ""


def indented(value: Any, indent: str) -> str:
    """Return a value as ``json.dumps`` writes it, all lines but the first after *indent*."""
    text = json.dumps(value, indent=INDENT, sort_keys=True)
    return text.replace("\n", f"\n{indent}")
