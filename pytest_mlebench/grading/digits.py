"""Whole numbers and decimals out of their digits, many at once.

Digits are read as in "Quickly parsing eight digits" (D. Lemire, 2018): pairs of digits, pairs of
pairs, and pairs of these are put together within a word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

FEW_DIGITS = 4  # so many make a number of 32 bits
MAX_DIGITS = 16
EXACT_DIGITS = 15  # so many are exact in a float, as is the power of ten that they are divided by


def only_digits(data: Array, lengths: Array) -> bool:
    """Tell whether tokens, which are all that data have but spaces, are nothing but digits."""
    return bool(np.count_nonzero(data - np.uint8(48) < 10) == lengths.sum())


def plain_numbers(data: Array, ends: Array, lengths: Array, *, known: bool) -> Array | None:
    """Return the numbers of tokens of digits, None if one has others, too many or none.

    There are eight bytes or more before the first token. It is *known* that they are digits, or
    looked at.
    """
    longest = lengths.max(initial=0)
    if longest > MAX_DIGITS or not lengths.min(initial=1):
        return None
    word = _FOUR if longest <= FEW_DIGITS else _EIGHT
    numbers = None
    for place in range(0, max(1, int(longest)), word.size):
        some = slice(None) if not place else np.flatnonzero(lengths > place)
        before, left = ends[some] - place, lengths[some] - place
        if not known and not word.are_digits(data, before, left):
            return None
        found = word.numbers(data, before, left)
        if numbers is None:
            numbers = found
        else:
            numbers[some] += found * 10**place
    return numbers


def plain_decimals(data: Array, starts: Array, ends: Array) -> Array | None:
    """Return the numbers of tokens of digits, perhaps with a sign and a point, as floats.

    None if one has anything else, or more digits than are exact. What the point leaves is a whole
    number over a power of ten, both exact, and so is the rounding of a single division.
    """
    is_negative = data[starts] == ord("-")
    starts = starts + is_negative
    points = np.flatnonzero(data == ord("."))
    begun = np.searchsorted(starts, points, side="right")
    inside = begun > np.searchsorted(ends, points, side="right")  # of a token that is asked for
    points, tokens = points[inside], begun[inside] - 1
    if (tokens[1:] == tokens[:-1]).any():
        return None
    whole_ends = ends.copy()
    whole_ends[tokens] = points
    whole = plain_numbers(data, whole_ends, whole_ends - starts, known=False)
    places = ends[tokens] - points - 1
    if whole is None or (points - starts[tokens] + places > EXACT_DIGITS).any():
        return None
    rest = plain_numbers(data, ends[tokens], places, known=False)
    if rest is None:
        return None
    values = whole.astype(np.float64)
    values[tokens] = (whole[tokens] * _POWERS[places] + rest) / _POWERS[places]
    return np.negative(values, out=values, where=is_negative)


class _Word:
    """So many digits as one number of as many bytes, and how it becomes the number they mean."""

    def __init__(self, size: int, *folds: tuple[int, int, int]) -> None:
        self.size = size
        self.dtype = np.dtype(f"<u{size}")
        self.folds = np.array(folds, dtype=self.dtype)
        self._low, self._high, self._zeros, self._sixes = (
            self._last(byte) for byte in (0x0F, 0xF0, 0x30, 0x06)
        )

    def numbers(self, data: Array, ends: Array, lengths: Array) -> Array:
        """Return the number that the last of so many digits before each end are."""
        words, counts = self._words(data, ends, lengths)
        words &= self._low[counts]
        for keep, factor, shift in self.folds:
            words &= keep
            words *= factor
            words >>= shift
        return np.asarray(words.view(f"<i{self.size}"))

    def are_digits(self, data: Array, ends: Array, lengths: Array) -> bool:
        """Tell whether the last of so many bytes before each end are digits: 0x30 to 0x39."""
        words, counts = self._words(data, ends, lengths)
        high, zeros = self._high[counts], self._zeros[counts]
        if ((words & high) != zeros).any():
            return False
        words += self._sixes[counts]  # from 0x3a on they come to 0x40
        return not ((words & high) != zeros).any()

    def _words(self, data: Array, ends: Array, lengths: Array) -> tuple[Array, Array]:
        """Return the word before each end, and how many of its bytes count."""
        view: Array = np.ndarray((len(data) - self.size + 1,), self.dtype, data, strides=(1,))
        return view[ends - self.size], np.minimum(lengths, self.size)

    def _last(self, byte: int) -> Array:
        """Return words of which none, one, two and so on of the last bytes are *byte*."""
        filled = [bytes([byte]) * count for count in range(self.size + 1)]
        words = [int.from_bytes(each.rjust(self.size, b"\0"), "little") for each in filled]
        return np.array(words, dtype=self.dtype)


_POWERS = 10 ** np.arange(EXACT_DIGITS + 1)
_FOUR = _Word(FEW_DIGITS, (0x0F0F0F0F, 10 * 2**8 + 1, 8), (0x00FF00FF, 100 * 2**16 + 1, 16))
_EIGHT = _Word(
    8,
    (0x0F0F0F0F0F0F0F0F, 10 * 2**8 + 1, 8),
    (0x00FF00FF00FF00FF, 100 * 2**16 + 1, 16),
    (0x0000FFFF0000FFFF, 10000 * 2**32 + 1, 32),
)
