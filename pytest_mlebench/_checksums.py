"""Md5 sums: of a file, or of bytes while they pass."""

from __future__ import annotations

import hashlib
import queue
import threading
from pathlib import Path

MAX_WAITING_BLOCKS = 32


def md5(path: Path) -> str:
    """Return the md5 sum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


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
