"""The tokens of many texts as flat arrays: counts, hashes, numbers, without an object for each.

A column of lists, such as ``"5 1 33 2"``, is taken apart a few megabytes at a time, so that the
memory is bounded by the size of the result, also where one cell holds all of it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from pytest_mlebench._csv import read_text
from pytest_mlebench.grading.csv_layout import WORD_BYTES, mixed, word_at
from pytest_mlebench.grading.digits import FEW_DIGITS, only_digits, plain_decimals, plain_numbers

try:
    import orjson
except ImportError:  # it is only faster
    orjson = None  # type: ignore[assignment,unused-ignore]

PORTION_CHARS = 1 << 17  # what is made of them still fits into the caches of a processor
KEYS_AT_ONCE = 1 << 20
LONG_BYTES = 256  # longer tokens are hashed one by one
ROW_END = "\0"  # in no submission, because it is refused where one is read
FIELD_END = "\1"

_TRUTH = re.compile(rb"true|false", re.IGNORECASE)
_OF_NUMBERS = b"0123456789+-.eE,"
_PAD = bytes(WORD_BYTES)
_SPACE = re.compile(r"\s")  # what str.split() splits at
_FURTHER_SPACES = [chr(code) for code in range(128, 0x3001) if chr(code).isspace()]
_IS_SPACE = np.array([code < 128 and (chr(code).isspace() or not code) for code in range(256)])

Array = np.ndarray[Any, np.dtype[Any]]
Texts: TypeAlias = Sequence[str] | Array
Refuse = Callable[[int], Exception]  # what to raise about a row


@dataclass(frozen=True)
class Portion:
    """The tokens of some texts: where they are, and how many each text has."""

    data: Array  # bytes, with eight zeros before and after
    starts: Array
    ends: Array
    rows: slice  # of which texts; a long one has several portions
    counts: Array
    is_part: bool = False  # there are other tokens, too

    def part(self, chosen: Array, size: int) -> Portion:
        """Return some tokens of every group of *size*."""
        places = np.flatnonzero(chosen)
        starts, ends = (
            each.reshape(-1, size)[:, places].ravel() for each in (self.starts, self.ends)
        )
        counts = self.counts // size * len(places)
        return Portion(self.data, starts, ends, self.rows, counts, is_part=True)

    def texts(self) -> Iterator[tuple[int, str]]:
        """Yield the row and the text of each token."""
        rows = np.repeat(np.arange(self.rows.start, self.rows.stop), self.counts)
        data = self.data.tobytes()
        for row, start, end in zip(rows, self.starts, self.ends, strict=True):
            yield int(row), data[start:end].decode()


@dataclass(frozen=True)
class Lists:
    """Values of many rows one after another, so many for each row."""

    values: Array
    counts: Array

    @property
    def rows(self) -> Array:
        """Return for each value the number of its row."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @property
    def places(self) -> Array:
        """Return for each value its place in its row, from 0."""
        begins = np.cumsum(self.counts) - self.counts
        return np.asarray(np.arange(len(self.values)) - np.repeat(begins, self.counts))

    @property
    def keys(self) -> Array:
        """Return for each value a number that is the same for the same value in the same row."""
        return mixed(self.rows.astype(np.uint64), self.values)

    def where(self, chosen: Array) -> Lists:
        """Return some of the values."""
        before = np.append(0, np.cumsum(chosen))
        ends = np.cumsum(self.counts)
        return Lists(self.values[chosen], before[ends] - before[ends - self.counts])


def split(texts: Texts, separator: str | None = None, size: int = 1) -> Iterator[Portion]:
    """Take texts apart as ``str.split`` does, at white space or at single spaces.

    No portion but the last one of a text ends within a group of *size* tokens.
    """
    for rows, piece in _pieces(texts, separator, size):
        data = np.frombuffer(_PAD + _plain(piece, separator).encode() + _PAD, np.uint8)
        yield _portion(data, rows, separator)


def as_texts(cells: Any) -> list[str]:
    """Return the texts of a column, empty ones where there is nothing."""
    found: list[str] = cells if isinstance(cells, list) else pd.Series(cells).tolist()
    if set(map(type, found)) <= {str}:
        return found
    texts = pd.Series(found, dtype=object)
    gaps = texts.isna()
    return list(map(str, (texts.where(~gaps, "") if gaps.any() else texts).tolist()))


def row_portions(*columns: Texts, chars: int | None = None) -> Iterator[slice]:
    """Yield rows, some at a time, whose texts in all columns are of bounded length together."""
    lengths = sum(np.fromiter(map(len, texts), np.int64, len(texts)) + 1 for texts in columns)
    ends, row = np.cumsum(lengths), 0
    while row < len(columns[0]):
        done = ends[row - 1] if row else 0
        most = done + (chars or PORTION_CHARS)
        stop = max(row + 1, int(np.searchsorted(ends, most, side="right")))
        yield slice(row, stop)
        row = stop


def hashes(texts: Texts, separator: str | None = None) -> Lists:
    """Return a number for each token that is the same for the same token."""
    return gather(split(texts, separator), texts, token_hashes, np.uint64)


def sets(texts: Texts) -> Lists:
    """Return the hashes of the different tokens of each text, some of them more than once."""
    counts = np.zeros(len(texts), dtype=np.int64)
    kept = Growing(max_tokens(texts), np.uint64)
    for portion in split(texts):
        found = Lists(token_hashes(portion), portion.counts)
        once = ~is_repeated(found.keys)
        kept.add(found.values[once])
        counts[portion.rows] += np.bincount(found.rows[once], minlength=len(portion.counts))
    return Lists(kept.values, counts)


def token_hashes(portion: Portion) -> Array:
    """Return a number for each token, of eight bytes at a time."""
    lengths = portion.ends - portion.starts
    total = np.zeros(len(lengths), dtype=np.uint64)
    left = np.flatnonzero(lengths <= LONG_BYTES)
    offset = 0
    while len(left):
        word = word_at(portion.data, portion.starts[left], lengths[left], offset)
        total[left] = mixed(total[left], word)
        offset += WORD_BYTES
        left = left[lengths[left] > offset]
    for place in np.flatnonzero(lengths > LONG_BYTES):
        token = portion.data[portion.starts[place] : portion.ends[place]].tobytes()
        total[place] = int.from_bytes(hashlib.blake2b(token, digest_size=8).digest(), "little")
    return total


def first(lists: Lists, most: int) -> Lists:
    """Return the first values of each row, so many at most."""
    return Lists(lists.values[lists.places < most], np.minimum(lists.counts, most))


def is_repeated(keys: Array) -> Array:
    """Tell which numbers have occurred before."""
    return np.asarray(pd.Series(keys).duplicated())


def is_in(keys: Array, others: Array) -> Array:
    """Tell which numbers are among others."""
    found = np.empty(len(keys), dtype=bool)
    for start in range(0, len(keys), KEYS_AT_ONCE):  # pandas may sort all of them
        part = slice(start, start + KEYS_AT_ONCE)
        found[part] = pd.Series(keys[part]).isin(others)
    return found


def whole_numbers(texts: Texts, limit: int, refuse: Refuse) -> Lists:
    """Return whole numbers, cut to ``-limit … limit``, or refuse a text that has others."""
    return gather(split(texts), texts, _whole_numbers(limit, refuse), np.int32)


def number_portions(texts: Texts, limit: int, refuse: Refuse) -> Iterator[tuple[Portion, Array]]:
    """Yield the same whole numbers a portion at a time, where all together take much memory."""
    numbers = _whole_numbers(limit, refuse)
    return ((portion, numbers(portion)) for portion in split(texts))


def _whole_numbers(limit: int, refuse: Refuse) -> Callable[[Portion], Array]:
    def parse(portion: Portion) -> Array:
        numbers = _parsed(portion)
        if numbers is None:
            numbers = np.fromiter(_any_numbers(portion, limit, refuse), np.int64)
        elif numbers.dtype == np.int32 and limit >= 10**FEW_DIGITS:
            return numbers
        numbers = np.clip(numbers, -limit, limit)
        return numbers if np.abs(numbers).max(initial=0) >= 2**30 else numbers.astype(np.int32)

    return parse


def floats(portion: Portion, width: int, refuse: Callable[[int, str], Exception]) -> Array:
    """Return the numbers of tokens, *width* in a row, or refuse a text that has others."""
    plain = _parsed(portion)
    if plain is None:
        plain = _json_numbers(portion)
    if plain is None:
        plain = plain_decimals(portion.data, portion.starts, portion.ends)
    if plain is not None:
        return plain.astype(np.float64, copy=False).reshape(-1, width)
    names = [str(place) for place in range(width)]
    table = table_of(portion, width, dict.fromkeys(names, np.float64))
    if table is not None:
        return np.asarray(table)
    values = np.fromiter(_floats(portion, refuse), np.float64)
    return values.reshape(-1, width)


def gather(
    portions: Iterator[Portion], texts: Texts, values_of: Callable[[Portion], Array], dtype: Any
) -> Lists:
    """Return a value for each token of all portions; *dtype* becomes larger where it must."""
    counts = np.zeros(len(texts), dtype=np.int64)
    found = Growing(max_tokens(texts), dtype)
    for portion in portions:
        found.add(values_of(portion))
        counts[portion.rows] += portion.counts
    return Lists(found.values, counts)


def max_tokens(texts: Texts) -> int:
    """Return how many tokens texts can have at the most: a space is between any two."""
    return sum(map(len, texts)) + len(texts)


class Growing:
    """An array that is filled bit by bit: what is not filled yet takes no memory."""

    def __init__(self, most: int, dtype: Any, *shape: int) -> None:
        self._space = np.empty((most, *shape), dtype=dtype)
        self._size = 0

    def add(self, values: Array) -> None:
        """Append values; a type that is too small for them gives way to theirs."""
        if not np.can_cast(values.dtype, self._space.dtype):
            wider = np.empty(self._space.shape, dtype=values.dtype)
            wider[: self._size] = self.values
            self._space = wider
        self._space[self._size : self._size + len(values)] = values
        self._size += len(values)

    @property
    def values(self) -> Array:
        """Return what has been appended."""
        return self._space[: self._size]


def table_of(portion: Portion, size: int, dtype: dict[str, Any]) -> pd.DataFrame | None:
    """Parse groups of *size* tokens as rows of a table; None if the parser finds others there."""
    text = _as_csv(portion, size)
    if _TRUTH.search(text) or (portion.starts == portion.ends).any():
        return None  # which pandas takes for numbers, where a column has nothing else
    try:
        table = read_text(
            text,
            header=None,
            names=[str(place) for place in range(size)],
            index_col=False,
            sep=FIELD_END,
            lineterminator="\n",
            quoting=3,  # csv.QUOTE_NONE
            na_filter=False,
            skip_blank_lines=False,
            dtype=dtype,
        )
    except (ValueError, OverflowError):  # pandas' own errors are ValueErrors
        return None
    return table if len(table) * size == len(portion.starts) else None


def _pieces(texts: Texts, separator: str | None, size: int) -> Iterator[tuple[slice, str]]:
    """Yield texts one after another, some at a time, and long ones piece by piece."""
    for rows in row_portions(texts):
        piece = ROW_END.join(texts[rows])
        if len(piece) <= PORTION_CHARS:
            yield rows, piece
        else:  # a single text
            yield from ((rows, part) for part in _cut(piece, separator, size))


def _cut(text: str, separator: str | None, size: int) -> Iterator[str]:
    """Yield pieces that end with a whole group; one that is very long makes its piece longer."""
    space = _SPACE if separator is None else re.compile(separator)
    position, chars = 0, PORTION_CHARS
    while len(text) - position > chars:
        gap = space.search(text, position + chars)
        if gap is None:
            break
        piece = text[position : gap.start()]
        over = (len(piece.split()) if separator is None else piece.count(separator) + 1) % size
        parts = piece.rsplit(separator, over) if over else [piece]
        if len(parts) <= over or not parts[0]:  # there is no group in it yet
            chars *= 2
            continue
        yield parts[0]
        position += len(parts[0]) + 1
        chars = PORTION_CHARS
    yield text[position:]


def _plain(text: str, separator: str | None) -> str:
    """Return a text without our own marks, and with blanks for further kinds of spaces."""
    for mark in FIELD_END if separator is None else f"{FIELD_END}\n":
        text = text.replace(mark, "\ufffd")  # no token of the truth has these
    if separator is None and not text.isascii():
        for space in _FURTHER_SPACES:
            text = text.replace(space, " ")
    return text


def _portion(data: Array, rows: slice, separator: str | None) -> Portion:
    body = data[WORD_BYTES:-WORD_BYTES]
    row_ends = np.flatnonzero(body == 0)
    if separator is None:
        edges = _edges(body)
        starts, ends = edges[0::2], edges[1::2]
        begun = np.searchsorted(starts, row_ends)
    else:
        gaps = np.flatnonzero((body == 0) | (body == ord(separator)))
        starts, ends = np.append(0, gaps + 1), np.append(gaps, len(body))
        begun = np.searchsorted(starts, row_ends, side="right")
    counts = np.diff(begun, prepend=0, append=len(starts))
    return Portion(data, starts + WORD_BYTES, ends + WORD_BYTES, rows, counts)


def _edges(body: Array) -> Array:
    """Return where tokens begin and end, in turn."""
    inside = body > 32
    if np.count_nonzero(inside) + np.count_nonzero((body == 32) | (body == 0)) < len(body):
        inside = ~_IS_SPACE[body]  # there are spaces of other kinds
    changes = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    first, last = (
        [place] if len(body) and inside[end] else [] for place, end in ((0, 0), (len(body), -1))
    )
    return np.concatenate([first, changes, last]).astype(np.int64)


def _parsed(portion: Portion) -> Array | None:
    """Return plain whole numbers, None if there are others."""
    lengths = portion.ends - portion.starts
    if portion.is_part:
        if ord(".") in portion.data:  # there are hardly any in a part without them
            return None
    elif not only_digits(portion.data, lengths):
        return None  # found out sooner than token by token
    return plain_numbers(portion.data, portion.ends, lengths, known=not portion.is_part)


def _json_numbers(portion: Portion) -> Array | None:
    """Return numbers as JSON spells them, None if there are others, or nothing reads them fast."""
    if orjson is None:
        return None
    marks = np.full(len(portion.ends), ord(","), dtype=np.uint8)
    text = _marked(portion, marks)
    if b"-0," in text or text.translate(None, _OF_NUMBERS):  # of that it would forget the sign
        return None
    try:
        values = orjson.loads(b"[%s]" % text[:-1])
    except ValueError:
        return None
    return np.fromiter(values, np.float64, len(values)) if len(values) == len(marks) else None


def _any_numbers(portion: Portion, limit: int, refuse: Refuse) -> Iterator[int]:
    """Yield numbers in all spellings of Python: 1_000, ٣, and of any length."""
    for row, token in portion.texts():
        try:
            yield max(-limit, min(int(token), limit))
        except ValueError:
            raise refuse(row) from None


def _floats(portion: Portion, refuse: Callable[[int, str], Exception]) -> Iterator[float]:
    """Yield numbers in all spellings of Python."""
    for row, token in portion.texts():
        try:
            yield float(token)
        except ValueError:
            raise refuse(row, token) from None


def _as_csv(portion: Portion, size: int) -> bytes:
    """Return the tokens as a table, each group a line of it."""
    marks = np.full(len(portion.ends), ord(FIELD_END), dtype=np.uint8)
    marks[size - 1 :: size] = ord("\n")
    return _marked(portion, marks)


def _marked(portion: Portion, marks: Array) -> bytes:
    """Return the tokens one after another, each with its mark after it."""
    data = portion.data.copy()
    data[portion.ends] = marks
    steps = np.zeros(len(data), dtype=np.int8)
    steps[portion.starts] = 1
    steps[portion.ends[portion.ends < len(data) - 1] + 1] -= 1
    return data[np.cumsum(steps, dtype=np.int8) > 0].tobytes()
