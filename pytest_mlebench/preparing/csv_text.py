"""The text of csv rows, byte for byte what ``DataFrame.to_csv`` writes, several times as fast.

pandas turns each cell into an object and each object into text. Here whole columns become text at
once: numbers by ``number_text``, texts as they are unless they need quotes. What is not proven to
come out the same is refused, and pandas writes it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np

from pytest_mlebench.preparing.number_text import (
    Array,
    formatted_rows,
    number_cells,
    number_rows,
)

QUOTE = b'"'
BETWEEN = "\0"  # texts in one
SLOT = "\0"  # where a quote may be
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
Block = list[Column]  # of some rows: what is made of them fits into the caches of a processor


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
        if self.float_format is not None and not _is_format(self.float_format):
            raise NotProven

    @property
    def is_quoted(self) -> bool:
        """Tell whether all that is no number has quotes."""
        return self.quoting == csv.QUOTE_NONNUMERIC

    @cached_property
    def harmless(self) -> bytes:
        """All bytes that need no quotes."""
        return bytes(set(range(256)) - {*SLOT.encode(), *self.sep.encode(), *b"\n", *QUOTE})


class RowJoiner:
    """Makes rows of cells; rows before that needed quotes, or were as many, save time."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._slot = SLOT if style.is_quoted else ""
        self._shape: tuple[object, ...] = ()
        self._flat: list[str] = []  # cells, and what is between them

    def text(self, columns: Sequence[Array | list[str]]) -> bytes:
        """Return the rows with a line feed after each; *columns* are numbers or texts.

        Raise TypeError if a text is none, and NotProven if one has a null character.
        """
        groups = list(_groups(columns))
        if len(groups) == 1 and not isinstance(groups[0][0], list):
            return _numbers_alone(groups[0], self._style)
        pieces = [g[0] if isinstance(g[0], list) else _cells(g, self._style) for g in groups]
        is_text = tuple(isinstance(group[0], list) for group in groups)
        if not self._slot:
            text = self._joined(pieces, is_text)
            rows = len(pieces[0])
            if not any(is_text) or _is_plain(text, rows, len(columns), self._style.sep):
                return text
            self._slot = SLOT  # where one text needs quotes, others will
        text = self._joined(pieces, is_text)
        slots = 2 * sum(is_text) * len(pieces[0])
        return _with_quotes(text, slots, self._style, is_alone=len(columns) == 1)

    def _joined(self, pieces: list[list[str]], is_text: tuple[bool, ...]) -> bytes:
        """Return all cells with what is between them, with slots for quotes around the texts."""
        rows, width = len(pieces[0]), 2 * len(pieces)
        shape = (rows, is_text, self._slot)
        if shape != self._shape:
            slots = [self._slot if each else "" for each in is_text]
            follows = [*(self._style.sep + slot for slot in slots[1:]), "\n" + slots[0]]
            row = [
                part for pair in zip(slots, follows, strict=True) for part in ("", "".join(pair))
            ]
            self._flat, self._shape = [slots[0], *row * rows], shape
            self._flat[-1] = slots[-1] + "\n"
        for place, piece in enumerate(pieces):
            self._flat[2 * place + 1 :: width] = piece
        return "".join(self._flat).encode()


def _is_format(form: object) -> bool:
    """Tell whether what is formatted so has nothing but digits, signs and letters."""
    return isinstance(form, str) and re.fullmatch(r"%(\.\d+)?[efgEFG]", form) is not None


def rows_text(blocks: Sequence[Block], style: Style) -> bytes:
    """Return the rows with a line feed after each."""
    joiner = RowJoiner(style)
    plain = [[each.cells if isinstance(each, Texts) else each for each in row] for row in blocks]
    return b"".join([joiner.text(columns) for columns in plain])


def _is_plain(text: bytes, rows: int, width: int, sep: str) -> bool:
    """Tell whether no text among joined cells needs quotes.

    One that does shows: there are more commas, line ends or quotes than we have put there.
    """
    if QUOTE in text or SLOT.encode() in text:
        return False
    if _count(text, sep) != rows * (width - 1) or _count(text, "\n") != rows:
        return False
    return width > 1 or not (text.startswith(b"\n") or b"\n\n" in text)


def _count(text: bytes, character: str) -> int:
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord(character)))


def _with_quotes(text: bytes, count: int, style: Style, *, is_alone: bool) -> bytes:
    """Return rows with quotes in the slots of the texts that need them, and no other slots."""
    marks = np.frombuffer(text.translate(None, style.harmless), np.uint8)
    slots = np.flatnonzero(marks == ord(SLOT))
    if len(slots) != count:
        raise NotProven
    needing = np.diff(slots)[::2] > 1  # something that is not harmless is between two slots
    text = text.replace(QUOTE, QUOTE * 2)
    if style.is_quoted or needing.all():
        return text.replace(SLOT.encode(), QUOTE)
    content = np.frombuffer(bytearray(text), np.uint8)
    slots = np.flatnonzero(content == ord(SLOT))
    if is_alone:
        needing |= np.diff(slots)[::2] == 1
    content[slots[np.repeat(needing, 2)]] = ord(QUOTE)
    return content.tobytes().replace(SLOT.encode(), b"")


def _groups(columns: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield neighbours that can be written together: whole numbers, booleans, or doubles."""

    def kind(numbered: tuple[int, Any]) -> object:
        number, column = numbered
        if isinstance(column, list):
            return number  # alone
        return "i" if column.dtype.kind == "u" and column.itemsize < 8 else column.dtype.kind

    for _, group in groupby(enumerate(columns), key=kind):
        yield [column for _, column in group]


def _numbers_alone(group: list[Array], style: Style) -> bytes:
    """Return rows of nothing but numbers of one kind."""
    is_alone = len(group) == 1
    if not _is_formatted(group, style):
        return number_rows(group, style.sep, EMPTY if is_alone else b"")
    cells = _cells(group, style)
    lines = [cell or EMPTY.decode() for cell in cells] if is_alone else cells
    return "\n".join([*lines, ""]).encode()


def _cells(group: list[Array], style: Style) -> list[str]:
    """Return the cells of a column of numbers; of several columns, joined already."""
    if _is_formatted(group, style):
        return formatted_rows(np.column_stack(group), style.float_format or "%r", style.sep)
    if len(group) == 1:
        return number_cells(group[0])
    return number_rows(group, style.sep).decode("ascii").split("\n")[:-1]


def _is_formatted(group: list[Array], style: Style) -> bool:
    return group[0].dtype.kind == "f" and style.float_format is not None
