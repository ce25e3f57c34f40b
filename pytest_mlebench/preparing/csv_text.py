"""The text of csv rows, byte for byte what ``DataFrame.to_csv`` writes, several times as fast.

pandas turns each cell into an object and each object into text. Here whole columns become text at
once: numbers by ``number_text``, texts as they are unless they need quotes. What is not proven to
come out the same is refused, and pandas writes it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from pytest_mlebench.preparing.number_text import (
    Array,
    formatted_rows,
    number_rows,
)

QUOTE = '"'
BETWEEN = "\0"  # texts in one
EMPTY = b'""'  # a row that is nothing but empty needs quotes


class NotProven(Exception):
    """The text of something might not be what pandas writes."""


@dataclass(frozen=True)
class Texts:
    """Cells that are texts, joined: so they go to another process faster than one by one."""

    joined: str
    count: int
    known: list[str] | None = None  # where they were joined

    @classmethod
    def of(cls, cells: list[str]) -> Texts:
        """Join texts; raise TypeError if one is none, NotProven if one has a null character."""
        joined = BETWEEN.join(cells)
        if joined.count(BETWEEN) != max(0, len(cells) - 1):
            raise NotProven
        return cls(joined, len(cells), cells)

    def __reduce__(self) -> tuple[object, ...]:
        return Texts, (self.joined, self.count)

    @property
    def cells(self) -> list[str]:
        """Return the texts one by one."""
        if self.known is not None:
            return self.known
        return self.joined.split(BETWEEN) if self.count else []


Column = Array | Texts
# Some rows: what is made of them fits into the caches of a processor. Bytes are their text already.
Block = list[Column] | bytes


@dataclass(frozen=True)
class Style:
    """How a csv file is to be written, as far as ``to_csv`` is asked for something special."""

    sep: str = ","
    quoting: int = csv.QUOTE_MINIMAL
    float_format: str | None = None

    def __post_init__(self) -> None:
        if len(self.sep) != 1 or self.sep in '"\n\r.+-e\0' or self.sep.isalnum():
            raise NotProven
        if not self.sep.isascii():
            raise NotProven
        if self.quoting not in (csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC):
            raise NotProven
        if self.float_format is not None and not isinstance(self.float_format, str):
            raise NotProven

    @property
    def is_quoted(self) -> bool:
        """Tell whether all that is no number has quotes."""
        return self.quoting == csv.QUOTE_NONNUMERIC


def rows_text(blocks: Sequence[Block], style: Style) -> bytes:
    """Return the rows with a line feed after each."""
    return b"".join(
        [block if isinstance(block, bytes) else _block_text(block, style) for block in blocks]
    )


def plain_text(columns: Sequence[Array | list[str]], style: Style) -> bytes | None:
    """Return rows, joined at once, unless a text in them needs quotes of its own.

    Whether one does is seen when all are joined: then there are more commas, line ends or quotes
    than we have put there. *columns* are numbers or texts; raise TypeError if a text is none.
    """
    groups = list(_groups(columns))
    quotes = ['"' if style.is_quoted and isinstance(group[0], list) else "" for group in groups]
    pieces = [group[0] if isinstance(group[0], list) else _cells(group, style) for group in groups]
    rows, width = len(pieces[0]), 2 * len(pieces)
    flat = [""] * (rows * width)
    follows = [*(style.sep + quote for quote in quotes[1:]), "\n" + quotes[0]]
    for place, piece in enumerate(pieces):
        flat[2 * place :: width] = piece
        flat[2 * place + 1 :: width] = [quotes[place] + follows[place]] * rows
    joined = quotes[0] + "".join(flat)
    text = (joined[:-1] if quotes[0] else joined).encode()
    marks = 2 * sum(map(bool, quotes))
    expected = {style.sep: len(columns) - 1, "\n": 1, QUOTE: marks, BETWEEN: 0}
    if any(_count(text, each) != rows * times for each, times in expected.items()):
        return None
    is_empty = len(columns) == 1 and (text.startswith(b"\n") or b"\n\n" in text)
    return None if is_empty else text


def _count(text: bytes, character: str) -> int:
    code = character.encode()
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == code[0])) if code in text else 0


def _block_text(columns: Sequence[Column], style: Style) -> bytes:
    groups = list(_groups(columns))
    missing = EMPTY if len(columns) == 1 else b""
    if len(groups) == 1 and (rows := _number_rows(groups[0], style, missing)) is not None:
        return rows
    pieces = [_cells(group, style) for group in groups]
    if len(columns) == 1 and "" in pieces[0]:
        pieces = [[cell or EMPTY.decode() for cell in pieces[0]]]
    lines = pieces[0] if len(pieces) == 1 else map(style.sep.join, zip(*pieces, strict=True))
    return "\n".join([*lines, ""]).encode()


def _groups(columns: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield neighbours that can be written together: whole numbers, booleans, or doubles."""

    def kind(numbered: tuple[int, Any]) -> object:
        number, column = numbered
        if isinstance(column, Texts | list):
            return number  # alone
        return "i" if column.dtype.kind == "u" and column.itemsize < 8 else column.dtype.kind

    for _, group in groupby(enumerate(columns), key=kind):
        yield [column for _, column in group]


def _number_rows(group: list[Column], style: Style, missing: bytes) -> bytes | None:
    """Return rows of neighbouring columns that are numbers, unless they are to be formatted."""
    columns = [column for column in group if not isinstance(column, Texts)]
    if not columns or (columns[0].dtype.kind == "f" and style.float_format is not None):
        return None
    return number_rows(columns, style.sep, missing)


def _cells(group: list[Column], style: Style) -> list[str]:
    """Return the cells of a column; of several columns of numbers, joined already."""
    if isinstance(group[0], Texts):
        return _quoted(group[0], style)
    rows = _number_rows(group, style, b"")
    if rows is not None:
        return rows.decode("ascii").split("\n")[:-1]
    numbers = np.column_stack([column for column in group if not isinstance(column, Texts)])
    return formatted_rows(numbers, style.float_format or "%r", style.sep)


def _quoted(texts: Texts, style: Style) -> list[str]:
    """Return texts with quotes where they are needed."""
    special = [each for each in (QUOTE, style.sep, "\n") if each in texts.joined]
    needing = _having(texts.joined, special) if special and not style.is_quoted else []
    joined = texts.joined.replace(QUOTE, QUOTE * 2)
    if texts.count and (style.is_quoted or len(needing) == texts.count):
        return f'"{joined}"'.replace(BETWEEN, f'"{BETWEEN}"').split(BETWEEN)
    if not needing:
        return texts.cells
    cells = joined.split(BETWEEN) if QUOTE in special else [*texts.cells]
    for number in needing:
        cells[number] = f'"{cells[number]}"'
    return cells


def _having(joined: str, special: list[str]) -> list[int]:
    """Return the numbers of the texts with a special character."""
    content = np.frombuffer(joined.encode() + BETWEEN.encode(), np.uint8)
    found = content == ord(special[0])
    for each in special[1:]:
        found |= content == ord(each)
    ends = np.flatnonzero(content == ord(BETWEEN))
    flags = np.logical_or.reduceat(found, np.concatenate([[0], ends[:-1] + 1]))
    numbers: list[int] = np.flatnonzero(flags).tolist()
    return numbers
