"""A csv file as text: where its rows are, and what of them can be told without parsing."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from pytest_mlebench._csv import read_text
from pytest_mlebench.preparing.csv_parts import table_text

PART_BYTES = 2 << 20  # what is made of them fits into the caches of a processor
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLANKS = tuple(b" \t\r")  # a line of nothing else is no row

# Each quote opens or closes a whole cell, or is one of two within.
_REGULAR = re.compile(rb'(?:[^"]++|(?<![^,\n])"(?:[^"]++|"")*+"(?![^,\r\n]))*+')

Array = np.ndarray[Any, np.dtype[Any]]
Types = dict[str, Any]  # of columns, as read_csv takes them


@dataclass(frozen=True)
class CsvSource:
    """A csv file and how its columns are read."""

    path: Path
    header: bytes
    columns: tuple[str, ...]
    types: Types

    @classmethod
    def of(cls, path: Path, types: Types) -> CsvSource | None:
        """Return a file, or none if its header is not a plain one."""
        header = _read_header(path)
        if header is None:
            return None
        return cls(path, header, tuple(pd.read_csv(io.BytesIO(header)).columns), types)

    def parse(self, rows: bytes, **options: Any) -> pd.DataFrame:
        """Return some rows as a table."""
        return read_text(self.header + rows, dtype=self.types or None, **options)

    def written(self, rows: bytes) -> bytes:
        """Return some rows as a prepared file has them."""
        return table_text(self.parse(rows), {"index": False})


@dataclass(frozen=True)
class Part:
    """A run of whole rows of a file."""

    source: CsvSource
    start: int
    size: int

    def read(self) -> bytes:
        """Return the rows."""
        with self.source.path.open("rb") as file:
            return read_span(file, self.start, self.size)


def read_span(file: IO[bytes], start: int, size: int) -> bytes:
    """Return some bytes of a file, with a line feed at its end if it lacks one."""
    found = os.pread(file.fileno(), size, start)
    return found + b"\n" if len(found) == size - 1 else found


def cut(source: CsvSource) -> Iterator[Part]:
    """Yield the parts of a file, cut between rows if all its quotes are regular."""
    start = len(source.header)
    with source.path.open("rb") as file:
        total = file.seek(0, os.SEEK_END)
        total += os.pread(file.fileno(), 1, total - 1) != b"\n"
        while start < total:
            size = min(PART_BYTES, total - start)
            while not (end := _last_end(read_span(file, start, size), start + size == total)):
                size = min(2 * size, total - start)
            yield Part(source, start, end)
            start += end


def row_lengths(rows: bytes) -> Array | None:
    """Return the lengths of rows, line feeds included, or none if they are not regular."""
    if b"\0" in rows or not _is_utf8(rows):  # a null character ends a cell, in some places
        return None
    if b'"' in rows and _REGULAR.fullmatch(rows) is None:
        return None
    if b"\r" in rows and not _ends_with_feeds(rows):
        return None
    ends = row_ends(rows)
    if not len(ends) or ends[-1] != len(rows):
        return None
    lengths = np.diff(ends, prepend=0).astype(np.uint32)
    first = np.frombuffer(rows, np.uint8)[ends - lengths]
    return None if (lengths < 2).any() or np.isin(first, BLANKS).any() else lengths


def row_ends(rows: bytes) -> Array:
    """Return the positions after each line feed that is not between quotes."""
    return _outside_quotes(rows, b"\n") + 1


def cell_ends(rows: bytes, lengths: Array) -> Array | None:
    """Return a row of positions for each row: of the comma or line feed after each cell.

    The rows are without quotes; there is none if not all have the same number of cells.
    """
    content = np.frombuffer(rows, np.uint8)
    ends = np.flatnonzero((content == ord(",")) | (content == ord("\n")))
    width, rest = divmod(len(ends), len(lengths))
    if rest:
        return None
    table = ends.reshape(len(lengths), width)
    return table if np.array_equal(table[:, -1] + 1, np.cumsum(lengths)) else None


def cell_count(row: bytes) -> int:
    """Return the number of cells of a regular row."""
    return len(next(csv.reader(io.StringIO(row.decode(), newline=""))))


def windows(content: bytes, size: int) -> Array:
    """Return every position of *content* as the beginning of so many bytes, to be taken as one."""
    return np.ndarray((len(content),), f"V{size}", content + bytes(size), strides=(1,))


def _outside_quotes(rows: bytes, byte: bytes) -> Array:
    """Return the positions of a byte where it is not between quotes."""
    content = np.frombuffer(rows, np.uint8)
    places = np.flatnonzero(content == ord(byte))
    if b'"' in rows:
        quotes = np.flatnonzero(content == ord('"'))
        places = places[np.searchsorted(quotes, places) % 2 == 0]
    return places


def _ends_with_feeds(rows: bytes) -> bool:
    """Tell whether carriage returns are but before line feeds, or between quotes."""
    returns = _outside_quotes(rows, b"\r")
    content = np.frombuffer(rows + b" ", np.uint8)
    return bool((content[returns + 1] == ord("\n")).all())


def _read_header(path: Path) -> bytes | None:
    """Return the first line, or none if it is not a plain one."""
    with path.open("rb") as file:
        line = file.readline(PART_BYTES)
    text = line.removeprefix(BYTE_ORDER_MARK)
    is_plain = text.endswith(b"\n") and text.strip() and _ends_with_feeds(text)
    return line if is_plain and _REGULAR.fullmatch(text) else None


def _last_end(block: bytes, is_last: bool) -> int:
    """Return the length of the whole rows in a block, or zero."""
    if is_last:
        return len(block)
    end, quotes = len(block), block.count(b'"')
    while (feed := block.rfind(b"\n", 0, end)) >= 0:
        quotes -= block.count(b'"', feed, end)
        if quotes % 2 == 0:
            return feed + 1
        end = feed
    return 0


def _is_utf8(rows: bytes) -> bool:
    try:
        return rows.isascii() or bool(rows.decode())
    except UnicodeDecodeError:
        return False
