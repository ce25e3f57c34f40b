"""Who is at work on a competition and seed: one worker of a machine at a time, as a lock says."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from pytest_mlebench.host.held_file import hold, is_held
from pytest_mlebench.layout import SeedFolder


class SeedOccupation:
    """The folders of competitions and seeds that this worker is at work on."""

    def __init__(self) -> None:
        self._held: dict[Path, int] = {}

    def occupy(self, seed: SeedFolder) -> None:
        """Make a seed's folder, which no other worker on this machine touches from now on."""
        while seed.path not in self._held:
            # another may just remove it, being empty: then it is neither made nor there
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                if seed.path.is_file():
                    raise NotADirectoryError(f"{seed.path} is a file")
                seed.path.mkdir(mode=0o700, parents=True, exist_ok=True)
                # one whose connection is lost may have it, and ends within its silence
                held = hold(_lock(seed.path), wait=True)
                if held is not None:
                    self._held[seed.path] = held

    @contextlib.contextmanager
    def alone(self, seed: Path) -> Iterator[bool]:
        """Tell for a block whether no other worker on this machine touches a seed's folder."""
        held = None
        if seed not in self._held:
            with contextlib.suppress(OSError):  # another has just removed it
                held = hold(_lock(seed), wait=False)
        try:
            yield held is not None or seed in self._held
        finally:
            if held is not None:
                os.close(held)

    def remove_empty(self, seed: SeedFolder) -> None:
        """Remove the folder of a seed in which nothing is, and on which nobody is at work."""
        with self.alone(seed.path) as alone, contextlib.suppress(OSError):
            if alone and seed.path not in self._held and not seed.attempts():
                seed.lock.unlink(missing_ok=True)
                _lock(seed.path).unlink(missing_ok=True)
                seed.path.rmdir()

    def leave(self) -> None:
        """Be at work on nothing any more."""
        while self._held:
            os.close(self._held.popitem()[1])


def is_occupied(seed: Path) -> bool:
    """Tell whether a worker is at work on a competition and seed."""
    return is_held(_lock(seed))


def _lock(seed: Path) -> Path:
    return seed / ".busy"
