"""Memory that a parser has freed: given back to the system, for what comes after it."""

from __future__ import annotations

import contextlib

LARGE_BYTES = 10**6  # of a file: less is not worth the while


def release(file_bytes: int) -> None:
    """Give back what reading a large file has left; the C library would keep it for itself.

    glibc keeps what is freed in blocks of up to 32 MB, see M_MMAP_THRESHOLD in mallopt(3); numpy
    then asks for larger ones. Other libraries have no such function, and need none.
    """
    if file_bytes < LARGE_BYTES:
        return
    import ctypes  # late on purpose: small files do not need it

    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
