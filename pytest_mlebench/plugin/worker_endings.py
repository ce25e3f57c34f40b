"""Which workers have said that all has ended with them, for a session that is interrupted."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any

STOP_SECONDS = 60.0  # for the machines to say that everything there has ended
POLL_SECONDS = 0.5  # between looks for connections that have ended without a word


class WorkerEndings:
    """What workers have said in the end, each in the thread of its connection."""

    def __init__(self) -> None:
        self._ended: set[Any] = set()
        self._change = threading.Condition()

    def note(self, worker: Any) -> None:
        """Take note that nothing runs any more where a worker is."""
        with self._change:
            self._ended.add(worker)
            self._change.notify_all()

    def wait(self, workers: Iterable[Any]) -> tuple[set[str], set[str]]:
        """Wait until workers have ended, or cannot say so any more; return machines: those on
        which everything has ended, and those of which nobody knows."""
        waited_for = list(workers)
        deadline = time.monotonic() + STOP_SECONDS
        with self._change:
            while time.monotonic() < deadline:
                if all(each in self._ended or each.channel.isclosed() for each in waited_for):
                    break
                self._change.wait(POLL_SECONDS)
            ended = {each.mle_slot.machine.name for each in waited_for if each in self._ended}
        return ended, {each.mle_slot.machine.name for each in waited_for} - ended
