"""Files: atomic writes, which appear whole or not at all; paths as people write them; sums."""

from __future__ import annotations

import hashlib
import os
import queue
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAX_WAITING_BLOCKS = 32


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside *path* that replaces it when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def short_path(path: Path) -> str:
    """Return a path as one would type it: relative where it is below, with ``~`` for home."""
    path = path.absolute()
    for start, name in ((Path.cwd(), ""), (Path.home(), "~/")):
        if path.is_relative_to(start) and path != start:
            return name + str(path.relative_to(start))
    return str(path)


def write_text(path: Path, text: str) -> None:
    """Write *text* to *path*: all of it, or nothing."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def md5(path: Path) -> str:
    """Return the md5 sum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def sha256(path: Path) -> str:
    """Return the sha256 sum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Digest:
    """An md5 sum taken in a thread of its own, beside the work that brings the bytes."""

    def __init__(self) -> None:
        self._digest = hashlib.md5(usedforsecurity=False)
        self._blocks: queue.Queue[bytes | None] = queue.Queue(MAX_WAITING_BLOCKS)
        self._thread: threading.Thread | None = None

    def update(self, block: bytes) -> None:
        """Add some bytes; wait if too many are waiting already."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True, name="mle-md5")
            self._thread.start()
        self._blocks.put(block)

    def close(self) -> None:
        """Wait until every byte is counted."""
        if self._thread is not None:
            self._blocks.put(None)
            self._thread.join()
            self._thread = None

    def hexdigest(self) -> str:
        """Return the sum of all the bytes."""
        self.close()
        return self._digest.hexdigest()

    def _run(self) -> None:
        while (block := self._blocks.get()) is not None:
            self._digest.update(block)
