"""Texts that an agent had a hand in, made harmless for terminals and pages."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

# control sequences of ECMA-48: CSI, then OSC and the other strings, then any escape of two letters
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[]PX^_].*?(?:\x07|\x1b\\|$)|\x1b.?", re.DOTALL)
_CUT = "…"


def one_line(text: str) -> str:
    """Return *text* without line breaks and control characters."""
    words = " ".join(text.split())
    return "".join(letter if letter.isprintable() else "?" for letter in words)


def plain_lines(text: str, *, width: int) -> list[str]:
    """Return the lines of a text as a terminal would leave them, none wider than *width*.

    Colours go, a line that was drawn anew with ``\\r`` shows its last state, and what is left that
    cannot be printed, marks that turn the direction of writing included, becomes ``?``.
    """
    return [_plain(line, width) for line in _ESCAPES.sub("", text).split("\n")]


def tail_lines(path: Path, *, lines: int, width: int, max_bytes: int = 64 * 1024) -> list[str]:
    """Return the last lines of a file, however large it is; none where it is no regular file."""
    text = read_end(path, max_bytes).decode(errors="replace")
    found: list[str] = []
    for line in reversed(_ESCAPES.sub("", text).split("\n")):  # only what is shown is looked at
        if len(found) == lines:
            break
        if plain := _plain(line, width):
            found.append(plain)
    return found[::-1]


def read_end(path: Path, max_bytes: int) -> bytes:
    """Return the last bytes of a regular file, of anything else none."""
    return _read(path, max_bytes, from_end=True)


def read_start(path: Path, max_bytes: int) -> bytes:
    """Return the first bytes of a regular file, of anything else none."""
    return _read(path, max_bytes, from_end=False)


def _plain(line: str, width: int) -> str:
    last = line.rstrip("\r").rpartition("\r")[2]
    cut = last if len(last) <= width else f"{last[: width - 1]}{_CUT}"
    spaced = cut.replace("\t", "    ")
    if spaced.isprintable():
        return spaced.rstrip()
    return "".join(letter if letter.isprintable() else "?" for letter in spaced).rstrip()


def _read(path: Path, max_bytes: int, *, from_end: bool) -> bytes:
    try:
        # a link is not followed, and a fifo that nobody writes to does not block
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(handle, "rb") as file:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            return b""
        if from_end:
            file.seek(max(0, facts.st_size - max_bytes))
        return file.read(max_bytes)
