"""Columns of numbers as the text that Python writes for them, all at once.

Numbers go through a JSON encoder: orjson where it is installed, which prints the shortest digits
that give the same double, as Python and numpy do, but writes exponents in another way. pandas is
not imported here: the processes that help writing a table start without it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from math import isnan
from typing import Any

import numpy as np

try:
    import orjson
except ImportError:  # an extra: the standard library gives the same text, at a fifth of the speed
    orjson = None  # type: ignore[assignment,unused-ignore]

Array = np.ndarray[Any, np.dtype[Any]]

# Within these bounds both Python and orjson write a double without an exponent.
MIN_PLAIN, MAX_PLAIN = 1e-4, 1e16
MIN_ZEROS = 1e-5  # from here on orjson writes zeros where Python writes the exponent -05
ZEROS = len("0.0000")
EXPONENT = b"e-05"
# A product of two doubles is off by 1.2e-16 of itself at most: one that is nearer to the middle of
# two whole numbers than this may be rounded to the wrong one.
DOUBT = 4e-16
MAX_DIGITS = 12

COMMA, END, FEED, MINUS, PLUS, ZERO = b",]\n-+0"
_POWERS = np.array([float(f"1e{exponent}") for exponent in range(23)])  # exact, all of them
_GENERAL = re.compile(r"%\.(\d+)g")
_CAPITALS = bytes.maketrans(b"tf", b"TF")  # true, false: as Python writes them


def number_rows(columns: Sequence[Array], sep: str, missing: bytes = b"") -> bytes:
    """Return rows of numbers of one kind: whole ones, booleans or doubles."""
    flat = columns[0] if len(columns) == 1 else np.column_stack(columns).ravel()
    if not len(flat):
        return b""
    text = bytearray(_as_python(flat))
    content = np.frombuffer(text, np.uint8)
    commas = np.flatnonzero(content == COMMA)
    if sep != ",":
        content[commas] = ord(sep)
    content[commas[len(columns) - 1 :: len(columns)]] = FEED
    content[-1] = FEED
    rows = bytes(memoryview(text)[1:])
    return rows.replace(b"null", missing) if b"null" in rows else rows


def number_cells(numbers: Array) -> list[str]:
    """Return numbers as text; what is missing is empty."""
    if not len(numbers):
        return []
    text = _as_python(numbers)[1:-1].decode("ascii")
    return (text.replace("null", "") if "null" in text else text).split(",")


def formatted_rows(values: Array, form: str, sep: str) -> list[str]:
    """Return rows of doubles in a format such as %.10g; what is missing is an empty cell."""
    general = _GENERAL.fullmatch(form)
    digits = int(general[1]) if general else 0
    if orjson is None or not 0 < digits <= MAX_DIGITS:
        return _formatted_by_python(values, form, sep)
    rounded, doubtful = _rounded(values, digits)
    # The shortest text of a rounded number is the number without its trailing zeros, which is what
    # the format asks for, but for the ".0" of a whole number.
    text = _encoded(rounded).decode("ascii")
    text = text.replace(".0,", ",").replace(".0]", "]").replace("null", "")
    rows = text[2:-2].split("],[") if len(values) else []
    if sep != ",":
        rows = [row.replace(",", sep) for row in rows]
    places = np.flatnonzero(doubtful.any(axis=1))
    others = _formatted_by_python(values[places], form, sep)
    for place, row in zip(places.tolist(), others, strict=True):
        rows[place] = row
    return rows


def _as_python(numbers: Array) -> bytes:
    """Return numbers as a JSON array, but each as Python writes it; what is missing is null."""
    text = _encoded(numbers)
    if numbers.dtype.kind == "b":
        return text.translate(_CAPITALS)
    if numbers.dtype.kind != "f":
        return text
    size = np.abs(numbers)
    plain = (size >= MIN_PLAIN) & (size < MAX_PLAIN) | (size == 0) | np.isnan(size)
    if plain.all():
        return text
    infinite = size == np.inf
    if orjson is not None and not (plain | infinite).all():
        new = _with_exponents(text, size, ~plain & ~infinite)
        if new is None:
            return _replaced(text, numbers, ~plain)
        text = new
    return _replaced(text, numbers, infinite) if infinite.any() else text


def _with_exponents(text: bytes, size: Array, odd: Array) -> bytes | None:
    """Return doubles with exponents in the form of Python; none if they are not as expected.

    In Python they have a sign and two digits at least, and 0.00001234 is 1.234e-05.
    """
    content = np.array(np.frombuffer(text, np.uint8))
    starts, ends = (each[odd & (size >= MIN_ZEROS) & (size < 1)] for each in _spans(content))
    starts = starts + (content[starts] == MINUS)
    is_long = content[starts] == ZERO  # else it has an exponent already
    starts, ends = starts[is_long], ends[is_long]
    marks = np.flatnonzero(content == ord("e"))
    if len(marks) + len(starts) != np.count_nonzero(odd):
        return None
    bare = marks[(content[marks + 1] != MINUS) & (content[marks + 1] != PLUS)]
    is_short = (content[marks + 3] == COMMA) | (content[marks + 3] == END)
    short = marks[(content[marks + 1] == MINUS) & is_short]
    kept = np.ones(len(content), bool)
    content[starts] = content[starts + ZEROS]  # the first digit, a point, and all that follow
    for place in range(2, ZEROS + 1):
        kept[starts + place] = False
    kept[starts[ends == starts + ZEROS + 1] + 1] = False  # no other digit: no point
    places = np.concatenate([bare + 1, short + 2, np.repeat(ends, len(EXPONENT))])
    added = np.concatenate([np.full(len(bare), PLUS), np.full(len(short), ZERO)])
    added = np.concatenate([added, np.tile(np.frombuffer(EXPONENT, np.uint8), len(ends))])
    new = np.insert(content, places, added)
    return bytes(new[np.insert(kept, places, True)])


def _spans(content: Array) -> tuple[Array, Array]:
    """Return where the elements of a JSON array begin and end."""
    commas = np.flatnonzero(content == COMMA)
    return np.concatenate([[1], commas + 1]), np.concatenate([commas, [len(content) - 1]])


def _replaced(text: bytes, numbers: Array, some: Array) -> bytes:
    """Return a JSON array with some of its elements as Python writes them."""
    starts, ends = (each[some].tolist() for each in _spans(np.frombuffer(text, np.uint8)))
    parts, done = [], 0
    for start, end, number in zip(starts, ends, numbers[some].tolist(), strict=True):
        parts += [text[done:start], repr(number).encode("ascii")]
        done = end
    return b"".join([*parts, text[done:]])


def _encoded(numbers: Array) -> bytes:
    if orjson is not None:
        found = np.ascontiguousarray(numbers)
        return orjson.dumps(found, option=orjson.OPT_SERIALIZE_NUMPY)
    text = json.dumps(numbers.tolist(), separators=(",", ":"))
    return (text.replace("NaN", "null") if numbers.dtype.kind == "f" else text).encode("ascii")


def _formatted_by_python(values: Array, form: str, sep: str) -> list[str]:
    return [
        sep.join(["" if isnan(value) else form % value for value in row]) for row in values.tolist()
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
