"""Erase what a copy of the session must not know: keys in its memory, and the environment.

A Python agent runs in a fork of the session. What the session knows is there at an address, whether
an object still refers to it or not, so keys are looked for in all writable memory and overwritten
where they are. Objects that held one hold as many asterisks afterwards.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from pytest_mlebench.sandbox.process.kernel import LINUX

_WINDOW_BYTES = 4 << 20
_ENCODINGS = ("utf-8", "utf-16-le", "utf-32-le")  # as Python keeps texts: one, two or four bytes
_ENV_START, _ENV_END = 47, 48  # of /proc/self/stat behind the name: fields 50 and 51 in proc(5)


def erase_texts(texts: Collection[str]) -> None:
    """Overwrite some texts wherever they are in the memory of this process."""
    needles = {
        text.encode(encoding): ("*" * len(text)).encode(encoding)
        for text in texts
        for encoding in _ENCODINGS
        if text
    }
    if not needles or not LINUX:
        return
    descriptor = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        # all are found before the first is overwritten, for what is looked for is among them
        found = list(_find(descriptor, needles))
    finally:
        os.close(descriptor)
    for address, instead in found:
        ctypes.memmove(address, instead, len(instead))


def erase_environment() -> None:
    """Empty the environment, and overwrite the one that this process was started with."""
    os.environ.clear()  # so that no pointer of the C library leads there any more
    if not LINUX:
        return
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
    if 0 < start < end:  # zeros where the kernel does not let us see them
        ctypes.memset(start, 0, end - start)


def _find(descriptor: int, needles: Mapping[bytes, bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield where needles are, and what is to be there instead."""
    step = _WINDOW_BYTES - max(map(len, needles)) + 1  # so that none falls between two windows
    window = bytearray(_WINDOW_BYTES)
    own = ctypes.addressof(ctypes.c_char.from_buffer(window))
    for start, end in _writable():
        is_around = start <= own < end
        spans = ((start, own), (own + _WINDOW_BYTES, end)) if is_around else ((start, end),)
        for low, high in spans:
            for address in range(low, high, step):
                size = _read(descriptor, window, address, high)
                yield from _occurrences(window, size, address, needles)
    window[:] = bytes(_WINDOW_BYTES)


def _read(descriptor: int, window: bytearray, address: int, end: int) -> int:
    """Fill the window from an address on, and return how much of it."""
    with contextlib.suppress(OSError), memoryview(window) as view:  # some pages cannot be read
        return os.preadv(descriptor, [view[: min(_WINDOW_BYTES, end - address)]], address)
    return 0


def _occurrences(
    window: bytearray, size: int, address: int, needles: Mapping[bytes, bytes]
) -> Iterator[tuple[int, bytes]]:
    for needle, instead in needles.items():
        place = window.find(needle, 0, size)
        while place >= 0:
            yield address + place, instead
            place = window.find(needle, place + 1, size)


def _writable() -> list[tuple[int, int]]:
    """Return the stretches of memory that this process can write to and has to itself."""
    found = []
    for line in Path("/proc/self/maps").read_text(errors="replace").splitlines():
        addresses, access = line.split(" ", 2)[:2]
        if access.startswith("rw"):
            start, _, end = addresses.partition("-")
            found.append((int(start, 16), int(end, 16)))
    return found
