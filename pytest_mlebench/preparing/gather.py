"""Collect rows of a file in any order while reading it from its beginning to its end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from pytest_mlebench.preparing.csv_source import Array, read_span, windows

BLOCK_BYTES = 1 << 20
PIECE_ROWS = 1 << 15
MAX_PADDING = 1.5  # of the bytes if all rows were as long as the longest to the bytes there are
MAX_GAP_BYTES = 16 << 10  # between rows that are read together: as fast as another read


Pieces = Iterator[tuple[slice, bytes]]
Blocks = Iterator[tuple[Array, int, bytes]]


def gather(path: Path, starts: Array, lengths: Array) -> Pieces:
    """Yield the text of rows in the order given, many at a time, and which of them it is."""
    if not len(starts):
        return
    order = np.argsort(starts, kind="stable")
    widest, total = int(lengths.max()), int(lengths.sum(dtype=np.int64))
    blocks = _blocks(path, starts[order], lengths[order], order)
    if widest * len(starts) <= MAX_PADDING * total:
        yield from _in_slots(blocks, starts, lengths, widest)
    else:
        yield from _in_places(blocks, starts, lengths, total)


def _in_slots(blocks: Blocks, starts: Array, lengths: Array, widest: int) -> Pieces:
    """Copy rows of about the same length into slots for the longest, then leave out the rest."""
    slots = np.empty(len(starts), dtype=f"V{widest}")
    for some, base, block in blocks:
        slots[some] = windows(block, widest)[starts[some] - base]
    content = slots.view(np.uint8).reshape(len(starts), widest)
    column = np.arange(widest, dtype=lengths.dtype)
    for piece in _pieces(len(starts)):
        yield piece, content[piece][column < lengths[piece, None]].tobytes()


def _in_places(blocks: Blocks, starts: Array, lengths: Array, total: int) -> Pieces:
    """Copy rows of any length, each to its place."""
    text = memoryview(bytearray(total))
    ends = np.cumsum(lengths, dtype=np.int64)
    places = ends - lengths
    for some, base, block in blocks:
        view, first = memoryview(block), starts[some] - base
        numbers = (first, first + lengths[some], places[some], ends[some])
        for begin, end, place, upto in zip(*(each.tolist() for each in numbers), strict=True):
            text[place:upto] = view[begin:end]
    for piece in _pieces(len(starts)):
        yield piece, bytes(text[places[piece.start] : ends[piece.stop - 1]])


def _pieces(count: int) -> Iterator[slice]:
    for start in range(0, count, PIECE_ROWS):
        yield slice(start, min(start + PIECE_ROWS, count))


def _blocks(path: Path, starts: Array, lengths: Array, order: Array) -> Blocks:
    """Yield which rows are near each other, where the first begins, and the bytes of all."""
    ends = starts + lengths
    gaps = np.flatnonzero(starts[1:] - ends[:-1] > MAX_GAP_BYTES) + 1
    with path.open("rb") as file:
        for first, last in pairwise([0, *gaps.tolist(), len(order)]):
            done = first
            while done < last:
                base = int(starts[done])
                fitting = np.searchsorted(ends[done:last], base + BLOCK_BYTES, "right")
                upto = done + max(1, int(fitting))
                yield order[done:upto], base, read_span(file, base, int(ends[upto - 1]) - base)
                done = upto
