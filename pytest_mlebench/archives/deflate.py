"""Deflate for speed: on all cores, and by isal where it is installed.

Whoever gets a prepared archive unpacks it once: that it is small matters less than that it is there
soon. Blocks are packed apart from each other, which costs about a hundredth in size.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from types import ModuleType
from typing import TypeVar

from pytest_mlebench.host.hardware import host_cpus
from pytest_mlebench.host.shared_cpus import further_cpus

T = TypeVar("T")
R = TypeVar("R")

BLOCK_BYTES = 1 << 20
MAX_THREADS = 16  # more would wait for the one that writes
RAW = -zlib.MAX_WBITS  # deflate without a header of its own, as archives have it
FASTEST = 1  # of zlib's levels
ISAL_LEVEL = 2  # of 0 to 3: as fast as 1, and smaller


def _library() -> ModuleType:
    """Return isal, which packs three times and unpacks twice as fast as zlib, or zlib itself."""
    try:
        from isal import isal_zlib  # an extra
    except ImportError:
        return zlib
    return isal_zlib


fast_zlib = _library()
DeflateError: tuple[type[Exception], ...] = (zlib.error, fast_zlib.error)


def deflated(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a stream of blocks, packed by several threads (which zlib lets run side by side)."""
    yield from in_threads(partial(packed, last=False), blocks)
    yield packed(b"")


def in_threads(function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Yield what a function makes of each item, in their order; a few are made ahead."""
    ahead: deque[Future[R]] = deque()
    with ExitStack() as stack:
        workers = 1 + stack.enter_context(further_cpus(min(host_cpus(), MAX_THREADS) - 1))
        pool = stack.enter_context(ThreadPoolExecutor(workers))
        for item in items:
            ahead.append(pool.submit(function, item))
            if len(ahead) > 2 * workers:
                yield ahead.popleft().result()
        for future in ahead:
            yield future.result()


def in_blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in blocks of the right size."""
    waiting: list[bytes] = []
    size = 0
    for chunk in chunks:
        waiting.append(chunk)
        size += len(chunk)
        if size >= BLOCK_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield from filter(None, [b"".join(waiting)])


def inflated(data: bytes | memoryview, size: int) -> bytes:
    """Return what was packed, at once; *size* is how much it should be."""
    return bytes(fast_zlib.decompress(data, RAW, max(1, size)))


def crc32(data: bytes | memoryview, before: int = 0) -> int:
    """Return the checksum of zip and 7z."""
    return int(fast_zlib.crc32(data, before))


def packed(block: bytes, *, last: bool = True) -> bytes:
    """Return a block, packed: the last of a stream, or one that others follow."""
    level = FASTEST if fast_zlib is zlib else ISAL_LEVEL
    packer = fast_zlib.compressobj(level, zlib.DEFLATED, RAW)
    start: bytes = packer.compress(block)
    end: bytes = packer.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
    return start + end
