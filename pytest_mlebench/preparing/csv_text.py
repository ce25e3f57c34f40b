"""The text of csv rows, byte for byte what ``DataFrame.to_csv`` writes, several times as fast.

pandas turns each cell into an object and each object into text. Here whole columns become text at
once: numbers through a JSON encoder (orjson where it is installed, which prints the shortest digits
that give the same double, as Python and numpy do), texts as they are unless they need quotes. What
is not proven to come out the same is refused, and pandas writes it.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isnan
from typing import Any

import numpy as np
import pandas as pd

try:
    import orjson
except ImportError:  # an extra: the standard library gives the same text, at a fifth of the speed
    orjson = None  # type: ignore[assignment,unused-ignore]

Array = np.ndarray[Any, np.dtype[Any]]
Column = Array | list[Any]  # numbers, or texts of which some are missing

# Within these bounds both Python and orjson write a double without an exponent.
MIN_PLAIN, MAX_PLAIN = 1e-4, 1e16
# A product of two doubles is off by 1.2e-16 of itself at most: one that is nearer to the middle of
# two whole numbers than this may be rounded to the wrong one.
DOUBT = 4e-16
MAX_DIGITS = 12

_POWERS = np.array([float(f"1e{exponent}") for exponent in range(23)])  # exact, all of them
QUOTE = '"'
_GENERAL = re.compile(r"%\.(\d+)g")


class NotProven(Exception):
    """The text of something might not be what pandas writes."""


@dataclass(frozen=True)
class Style:
    """How a csv file is to be written, as far as ``to_csv`` is asked for something special."""

    sep: str = ","
    quoting: int = csv.QUOTE_MINIMAL
    float_format: str | None = None

    def __post_init__(self) -> None:
        if len(self.sep) != 1 or self.sep in '"\n\r.+-e' or self.sep.isalnum():
            raise NotProven
        if self.quoting not in (csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC):
            raise NotProven
        if self.float_format is not None and not isinstance(self.float_format, str):
            raise NotProven


def columns_of(table: pd.DataFrame) -> list[Column]:
    """Return the columns of a table in the form that ``rows_text`` takes, or raise NotProven."""
    if not table.shape[1]:
        raise NotProven
    return [_column(table.iloc[:, number]) for number in range(table.shape[1])]


def rows_text(columns: Sequence[Column], style: Style) -> str:
    """Return the rows with a line feed after each, or raise NotProven."""
    pieces = [cells for group in _groups(columns) for cells in _cells(group, style)]
    if len(columns) == 1 and "" in pieces[0]:  # a row that is nothing but empty needs quotes
        raise NotProven
    if len(pieces) == 1:
        return "\n".join([*pieces[0], ""])
    return "\n".join([*map(style.sep.join, zip(*pieces, strict=True)), ""])


def _column(cells: pd.Series[Any]) -> Column:
    if isinstance(cells.dtype, pd.StringDtype) or cells.dtype == object:
        texts: list[Any] = cells.to_numpy(dtype=object).tolist()
        return texts
    if isinstance(cells.dtype, np.dtype) and (cells.dtype.kind in "iub" or cells.dtype == "f8"):
        return np.asarray(cells)
    raise NotProven


def _groups(columns: Sequence[Column]) -> Iterator[list[Column]]:
    """Yield neighbours that can be written together: whole numbers, or doubles."""

    def kind(numbered: tuple[int, Column]) -> object:
        number, column = numbered
        if isinstance(column, list) or column.dtype.kind == "b":
            return number  # alone
        return "i" if column.dtype.kind == "u" and column.itemsize < 8 else column.dtype.kind

    for _, group in groupby(enumerate(columns), key=kind):
        yield [column for _, column in group]


def _cells(group: list[Column], style: Style) -> list[list[str]]:
    """Return the cells of neighbouring columns; of several columns of numbers, joined already."""
    first = group[0]
    if isinstance(first, list):
        return [_texts(first, style)]
    if first.dtype.kind == "b":
        return [_booleans(first, style)]
    if first.dtype.kind == "f":
        return _floats([np.asarray(column) for column in group], style)
    return [_joined(group, style.sep)]


def _booleans(values: Array, style: Style) -> list[str]:
    if style.quoting != csv.QUOTE_MINIMAL:
        raise NotProven
    words: list[str] = np.where(values, "True", "False").tolist()
    return words


def _floats(columns: list[Array], style: Style) -> list[list[str]]:
    if style.float_format is not None:
        return [_formatted(np.column_stack(columns), style)]
    odd = [_is_odd(column) for column in columns]
    if not any(flags.any() for flags in odd):
        if style.quoting != csv.QUOTE_MINIMAL and any(np.isnan(column).any() for column in columns):
            raise NotProven  # pandas puts quotes around a number that is missing
        return [_joined(columns, style.sep)]
    return [_patched(*pair, style) for pair in zip(columns, odd, strict=True)]


def _is_odd(values: Array) -> Array:
    """Tell which doubles are infinite or written with an exponent."""
    size = np.abs(values)
    plain = (size >= MIN_PLAIN) & (size < MAX_PLAIN)
    return np.asarray(~(plain | (size == 0) | np.isnan(size)))


def _patched(values: Array, odd: Array, style: Style) -> list[str]:
    """Return the cells of a column in which some are to be written by Python itself."""
    if style.quoting != csv.QUOTE_MINIMAL and np.isnan(values).any():
        raise NotProven
    cells = _joined([values], style.sep)
    places = np.flatnonzero(odd)
    for place, value in zip(places.tolist(), values[places].tolist(), strict=True):
        cells[place] = repr(value)
    return cells


def encoded_numbers(numbers: Array) -> list[str]:
    """Return whole numbers as text."""
    return _joined([numbers], ",")


def _joined(columns: Sequence[Column], sep: str) -> list[str]:
    """Return the rows of some columns of numbers, one text each."""
    if len(columns) == 1:
        cells = _encoded(np.ascontiguousarray(columns[0]))[1:-1].split(",")
        return cells if len(columns[0]) else []
    rows = _encoded(np.column_stack([np.asarray(column) for column in columns]))
    if sep != ",":
        rows = rows.replace(",", sep)
        return rows[2:-2].split(f"]{sep}[") if len(columns[0]) else []
    return rows[2:-2].split("],[") if len(columns[0]) else []


def _encoded(numbers: Array) -> str:
    """Return numbers as JSON, what is missing as nothing at all."""
    if orjson is not None:
        text = orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY).decode("ascii")
        return text.replace("null", "") if numbers.dtype.kind == "f" else text
    text = json.dumps(numbers.tolist(), separators=(",", ":"))
    return text.replace("NaN", "") if numbers.dtype.kind == "f" else text


def _formatted(values: Array, style: Style) -> list[str]:
    """Return rows of doubles in a format such as %.10g; what is missing is an empty cell."""
    if style.float_format is None or style.quoting != csv.QUOTE_MINIMAL:
        raise NotProven  # pandas puts quotes around formatted numbers
    general = _GENERAL.fullmatch(style.float_format)
    digits = int(general[1]) if general else 0
    if orjson is None or not 0 < digits <= MAX_DIGITS:
        return _by_python(values, style)
    rounded, doubtful = _rounded(values, digits)
    # The shortest text of a rounded number is the number without its trailing zeros, which is what
    # the format asks for, but for the ".0" of a whole number.
    text = orjson.dumps(rounded, option=orjson.OPT_SERIALIZE_NUMPY).decode("ascii")
    text = text.replace(".0,", ",").replace(".0]", "]").replace("null", "")
    rows = text[2:-2].split("],[") if len(values) else []
    if style.sep != ",":
        rows = [row.replace(",", style.sep) for row in rows]
    places = np.flatnonzero(doubtful.any(axis=1))
    for place, row in zip(places.tolist(), _by_python(values[places], style), strict=True):
        rows[place] = row
    return rows


def _by_python(values: Array, style: Style) -> list[str]:
    form = style.float_format or "%r"
    return [
        style.sep.join(["" if isnan(value) else form % value for value in row])
        for row in values.tolist()
    ]


def _rounded(values: Array, digits: int) -> tuple[Array, Array]:
    """Return doubles rounded to so many digits, and which of them are better left to Python.

    A double times a power of ten that is itself exact is off by half a unit in its last place; if
    it is not near the middle between two whole numbers, it is rounded to the right one. That one
    divided by the same power is the double nearest to the decimal number.
    """
    size = np.abs(values)
    inside = (size >= MIN_PLAIN) & (size < 10.0 ** (digits - 1))
    safe = np.where(inside, size, 1.0)
    exponent = np.floor(np.log10(safe)).astype(np.int64)
    power = _POWERS[digits - 1 - exponent]
    scaled = safe * power
    whole = np.rint(scaled)
    near_half = np.abs(scaled - np.floor(scaled) - 0.5) < DOUBT * 10.0**digits
    wrong_power = (scaled < 10.0 ** (digits - 1)) | (whole >= 10.0**digits)
    doubtful = ~inside | near_half | wrong_power
    rounded = np.copysign(whole / power, values)
    plain = (values == 0) | np.isnan(values)
    return np.where(plain, values, rounded), doubtful & ~plain


def _texts(cells: list[Any], style: Style) -> list[str]:
    """Return texts with quotes where they are needed; missing ones are empty."""
    try:
        together = "\0".join(cells)
    except TypeError:
        cells = [_text(cell) for cell in cells]
        together = "\0".join(cells)
    if style.quoting == csv.QUOTE_NONNUMERIC:
        return _quoted(cells, lambda cell: True, '"' in together)
    special = '"' in together, style.sep in together, "\n" in together
    if not any(special):
        return cells
    needs = re.compile(f'["\n{re.escape(style.sep)}]').search
    return _quoted(cells, needs, special[0])


def _quoted(cells: list[str], needs: Callable[[str], object], double: bool) -> list[str]:
    if double:
        return [f'"{cell.replace(QUOTE, QUOTE * 2)}"' if needs(cell) else cell for cell in cells]
    return [f'"{cell}"' if needs(cell) else cell for cell in cells]


def _text(cell: Any) -> str:
    if type(cell) is str:
        return cell
    if cell is None or cell is pd.NA or (type(cell) is float and isnan(cell)):
        return ""
    raise NotProven
