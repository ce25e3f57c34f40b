"""Turns of competitions that are prepared side by side: some are fetched while others are made.

Fetching (download, unpacking) waits for the network and the disk, making (preparing, verifying)
needs cores and memory: each has places of its own, so that neither waits for the other.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Turns:
    """What a competition enters to be fetched, and to be made; by default at once."""

    fetching: AbstractContextManager[Any] = field(default_factory=nullcontext)
    making: AbstractContextManager[Any] = field(default_factory=nullcontext)
    cpus: int | None = None  # the descriptor of those that are shared (``shared_cpus``)

    @classmethod
    def of(cls, jobs: int, cpus: int | None = None) -> Turns:
        """Let so many competitions be fetched at a time, and as many be made."""
        return cls(threading.BoundedSemaphore(jobs), threading.BoundedSemaphore(jobs), cpus)


def in_flight(jobs: int) -> int:
    """Return of how many competitions raw files can be on the disk at a time."""
    return 1 if jobs == 1 else 2 * jobs
