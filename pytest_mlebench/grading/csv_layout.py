"""Where the fields of a plain csv file are, and which rows of two such files have the same ids.

Most of what a csv parser does to a table of a million rows is to make a million texts of its ids,
only to find that they are those of the answers. In a plain file, which has no quotes and as many
commas in every line as in its header, the bytes of a column can be compared where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

BLOCK_BYTES = 1 << 22
MAX_ID_BYTES = 256  # longer ids are left to the parser
WORD_BYTES = 8  # bytes are compared so many at a time
COMMA, NEWLINE, RETURN = b",\n\r"

# 2^64 divided by the golden ratio: multiplying by it spreads the bits (Knuth, TAOCP 3, 6.4)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MASKS = np.array([2 ** (8 * count) - 1 for count in range(WORD_BYTES + 1)], dtype=np.uint64)
# what pandas takes for a missing value (read_csv, na_values); none is longer than a word
_MISSING = np.array(
    [
        int.from_bytes(word, "little")
        for word in (
            *(b"", b"#N/A", b"#N/A N/A", b"#NA", b"-1.#IND", b"-1.#QNAN", b"-NaN", b"-nan"),
            *(b"1.#IND", b"1.#QNAN", b"<NA>", b"N/A", b"NA", b"NULL", b"NaN", b"None", b"n/a"),
            *(b"nan", b"null"),
        )
    ],
    dtype=np.uint64,
)


@dataclass(frozen=True)
class Layout:
    """A plain file: its header, and where each field of each row ends."""

    data: bytes
    header: tuple[str, ...]
    body: int  # where the first row begins
    ends: Array  # of each field, a row for each row
    line_end: int  # how many bytes end a line: 1, or 2 with a carriage return

    def __len__(self) -> int:
        return len(self.ends)

    def ids(self, names: Sequence[str]) -> list[Array] | None:
        """Return the ids as 64-bit words, equal where the bytes are; None if they are too long."""
        words: list[Array] = []
        for name in names:
            starts, ends = self._span(self.header.index(name))
            lengths = ends - starts
            if lengths.max() > MAX_ID_BYTES:
                return None
            words += _words(self.data, starts, lengths)
        return words

    def lacks(self, names: Sequence[str]) -> bool:
        """Tell whether a row has no id, by any word for it that pandas knows."""
        for name in names:
            starts, ends = self._span(self.header.index(name))
            is_short = ends - starts <= WORD_BYTES
            short, lengths = starts[is_short], (ends - starts)[is_short]
            if len(short) and np.isin(word_at(self.data, short, lengths, 0), _MISSING).any():
                return True
        return False

    def _span(self, column: int) -> tuple[Array, Array]:
        """Return where a column begins and ends in each row."""
        if column:
            starts = self.ends[:, column - 1] + 1
        else:
            starts = np.append(self.body, self.ends[:-1, -1] + 1)
        is_last = column == len(self.header) - 1
        return starts, self.ends[:, column] - (self.line_end - 1 if is_last else 0)


def find_layout(data: bytes) -> Layout | None:
    """Return the layout of a plain file, None if it is not one."""
    head = data.find(b"\n")
    stop = len(data)
    while stop and data[stop - 1] in (NEWLINE, RETURN):
        stop -= 1
    if not 0 <= head < stop or len(data) < WORD_BYTES or b'"' in data:
        return None
    line_end = 2 if data[head - 1] == RETURN else 1
    header = tuple(data[: head + 1 - line_end].decode("utf-8-sig").split(","))
    ends = _field_ends(data, head + 1, stop, stop + line_end - 1)
    if len(ends) % len(header):
        return None
    layout = Layout(data, header, head + 1, ends.reshape(-1, len(header)), line_end)
    return layout if _is_regular(layout, stop) else None


def match_rows(given: Sequence[Array], wanted: Sequence[Array], *, exact: bool) -> Array | None:
    """Return which row of the given ids is each wanted one; None if that cannot be told.

    It can where ids are unique and none is missing, and if *exact*, none is left over.
    """
    if len(given) != len(wanted) or (exact and len(given[0]) != len(wanted[0])):
        return None
    theirs, ours = _hashes(given), _hashes(wanted)
    order = np.argsort(theirs)
    theirs = theirs[order]
    if (theirs[1:] == theirs[:-1]).any():
        return None
    places = order[np.minimum(np.searchsorted(theirs, ours), len(theirs) - 1)]
    if not all(np.array_equal(a[places], b) for a, b in zip(given, wanted, strict=True)):
        return None
    is_unique = np.bincount(places, minlength=len(theirs)).max() == 1
    return places if is_unique else None


def _field_ends(data: bytes, start: int, stop: int, last: int) -> Array:
    """Return the positions of all commas and line ends, and where the last field ends."""
    dtype = np.int32 if stop < 2**31 else np.int64
    found = []
    for block in range(start, stop, BLOCK_BYTES):
        piece = np.frombuffer(data, np.uint8, min(BLOCK_BYTES, stop - block), block)
        found.append((np.flatnonzero((piece == COMMA) | (piece == NEWLINE)) + block).astype(dtype))
    return np.concatenate([*found, np.array([last], dtype=dtype)])


def _is_regular(layout: Layout, stop: int) -> bool:
    """Tell whether every line ends where its last field does, and in the same way."""
    data, rows = layout.data, len(layout)
    newlines = layout.ends[:-1, -1]
    codes = np.frombuffer(data, np.uint8)
    if data.count(b"\n", layout.body, stop) != rows - 1 or (codes[newlines] != NEWLINE).any():
        return False
    if layout.line_end == 1:
        return data.find(b"\r", 0, stop) < 0
    return data.count(b"\r", 0, stop) == rows and bool((codes[newlines - 1] == RETURN).all())


def word_at(data: Any, starts: Array, lengths: Array, offset: int) -> Array:
    """Return eight bytes of each piece of data as a number, zeros after its end."""
    # at every byte begins a word; the last ones of the data are reached by a shift
    view: Array = np.ndarray((len(data) - WORD_BYTES + 1,), "<u8", data, strides=(1,))
    places = starts + offset
    within = np.minimum(places, len(view) - 1)
    word = view[within]
    if (within != places).any():
        word >>= (8 * np.minimum(places - within, WORD_BYTES - 1)).astype(np.uint64)
    return np.asarray(word & _MASKS[np.clip(lengths - offset, 0, WORD_BYTES)])


def mixed(total: Array, word: Array) -> Array:
    """Return numbers that depend on all bits of both."""
    total = (total ^ word) * _MULTIPLIER
    return np.asarray(total ^ (total >> np.uint64(32)))


def _words(data: bytes, starts: Array, lengths: Array) -> list[Array]:
    """Return pieces of data as words; every piece has as many."""
    offsets = range(0, max(1, int(lengths.max())), WORD_BYTES)
    return [word_at(data, starts, lengths, offset) for offset in offsets]


def _hashes(words: Sequence[Array]) -> Array:
    """Return a number for each row that is the same for the same words."""
    total = np.zeros(len(words[0]), dtype=np.uint64)
    for word in words:
        total = mixed(total, word)
    return total
