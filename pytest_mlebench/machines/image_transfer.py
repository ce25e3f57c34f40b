"""How an image comes from the controller's engine to a host's: saved once, sent in pieces.

The pieces come through the channel that a worker has anyway, so that it works wherever workers do.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_mlebench.errors import InfrastructureError
from pytest_mlebench.machines.delivery import PIECE_BYTES, WINDOW, Conversation
from pytest_mlebench.machines.link import Reply

BUSY_SECONDS = 120.0  # after the last piece, for the engine there to unpack what it was sent
POLL_SECONDS = 0.5  # while the controller saves the image


class ImageSpool:
    """The controller's image as a file, written when the first host asks for it."""

    def __init__(self, path: Path, save: Callable[[Path], None] | None) -> None:
        self._path = path
        self._save = save
        self._lock = threading.Lock()
        self._saving: threading.Thread | None = None
        self._asked_at: float | None = None
        self._problem = "" if save is not None else "the controller's engine does not have it"

    def answers(self) -> Mapping[str, Callable[..., Any]]:
        """Return what workers may ask for."""
        return {"image": self.size, "image-piece": self.piece}

    def size(self, _node: Any) -> int | None:
        """Return how many bytes there are to fetch; None as long as that is not known."""
        self._asked_at = time.monotonic()
        with self._lock:
            if self._saving is None and self._save is not None:
                self._saving = threading.Thread(target=self._write, args=(self._save,), daemon=True)
                self._saving.start()
        if self._saving is not None and self._saving.is_alive():
            return None
        if self._problem:
            raise InfrastructureError(self._problem)
        return self._path.stat().st_size

    def piece(self, _node: Any, offset: int) -> bytes:
        """Return a piece of the image."""
        self._asked_at = time.monotonic()
        with self._path.open("rb") as file:
            file.seek(offset)
            return file.read(PIECE_BYTES)

    def is_busy(self) -> bool:
        """Tell whether a host has asked for something of the image a short while ago."""
        return self._asked_at is not None and time.monotonic() - self._asked_at < BUSY_SECONDS

    def remove(self) -> None:
        """Remove the file."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _write(self, save: Callable[[Path], None]) -> None:
        try:
            save(self._path)
        except (InfrastructureError, OSError) as problem:
            self._problem = str(problem)


def fetch_image(link: Conversation) -> Iterator[bytes]:
    """Yield the controller's image in pieces, having asked for some of them ahead."""
    while (size := link.ask("image")) is None:
        time.sleep(POLL_SECONDS)
    waiting: deque[Reply] = deque()
    offset = 0
    while offset < size or waiting:
        while offset < size and len(waiting) < WINDOW:
            waiting.append(link.post("image-piece", offset=offset))
            offset += PIECE_BYTES
        yield waiting.popleft().wait()
