"""JSON read and written as the standard library does, by orjson where the result is the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

try:
    import orjson
except ImportError:  # an extra: the standard library gives the same, at a fifth of the speed
    orjson = None  # type: ignore[assignment,unused-ignore]

BATCH_RECORDS = 2048
# A whole number of so many digits may be more than orjson can hold, which makes a double of it.
MANY_DIGITS = b"0" * 19

_ONLY_DIGITS = bytes(ord("0") if chr(code) in "0123456789" else ord(" ") for code in range(256))
_STRING = re.compile(rb'("(?:[^"\\]|\\.)*+")')
# An exponent, or what Python writes with one: below 0.0001, or 17 digits before the point.
_EXPONENT = re.compile(rb"[0-9]e|(?<![0-9])0\.0000[0-9]|[0-9]{17}\.")


def loads(content: bytes) -> Any:
    """Return what ``json.loads`` makes of a UTF-8 text."""
    if orjson is not None and MANY_DIGITS not in content.translate(_ONLY_DIGITS):
        try:
            return orjson.loads(content)
        except ValueError:  # what it does not know, such as NaN: the standard library decides
            pass
    return json.loads(content.decode())


def dumps(data: Any) -> bytes:
    """Return what ``json.dumps`` makes of some data."""
    if orjson is not None:
        try:
            text = _spaced(orjson.dumps(data))
        except TypeError:  # it refuses what it cannot write, such as a large number
            text = None
        if text is not None:
            return text
    return json.dumps(data).encode()


def dump(data: Any) -> Iterator[bytes]:
    """Yield what ``json.dumps`` makes of some data, in parts: of a long list a part at a time."""
    if isinstance(data, dict) and data and all(isinstance(key, str) for key in data):
        for number, (key, value) in enumerate(data.items()):
            yield (b", " if number else b"{") + dumps(key) + b": "
            yield from dump(value)
        yield b"}"
    elif isinstance(data, list) and len(data) > BATCH_RECORDS:
        for start in range(0, len(data), BATCH_RECORDS):
            yield (b", " if start else b"[") + dumps(data[start : start + BATCH_RECORDS])[1:-1]
        yield b"]"
    else:
        yield dumps(data)


def _spaced(text: bytes) -> bytes | None:
    """Return the text of orjson with spaces, or none if more than those would be different.

    That is so for characters that are not ASCII, which it writes as they are, for NaN, which
    becomes null, and for doubles with an exponent (from where on depends on its version).
    """
    if not text.isascii() or b"\x7f" in text or b"null" in text:
        return None
    outside, *rest = _STRING.split(text)
    between = b"\n".join([outside, *rest[1::2]])  # a line feed occurs nowhere in it
    if _EXPONENT.search(between):
        return None
    between = between.replace(b",", b", ").replace(b":", b": ")
    parts = between.split(b"\n")
    return b"".join([parts[0], *chain.from_iterable(zip(rest[::2], parts[1:], strict=True))])
