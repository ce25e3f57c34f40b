"""The watch over a running container: the clock, the disk, the engine, the statistics."""

from __future__ import annotations

import queue
import time
from dataclasses import dataclass

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.sandbox import Reason
from pytest_mlebench.sandbox.disk import DiskGuard, Trouble
from pytest_mlebench.sandbox.docker.container import Container, Event
from pytest_mlebench.sandbox.docker.stats import Sampler

_TICK = 1.0  # seconds between looks at the disk
_LOOK = 10.0  # seconds between looks at the container itself
_KILLED = 137  # 128 + SIGKILL


@dataclass
class Watch:
    """Follows a container that has been started until it has ended."""

    container: Container
    sampler: Sampler
    disk: DiskGuard
    deadline: float  # on the monotonic clock
    grace: float
    oom: bool = False

    def __post_init__(self) -> None:
        self._next_look = time.monotonic() + _TICK  # one early: a short life may go past us

    def until_end(self) -> Reason:
        """Wait for the end, or bring it about at a limit, and return why it came."""
        try:
            return self._until_end()
        except SandboxError:
            if not self.disk.is_full():  # a log that cannot be written ends the watch too
                raise
        return self._stop_at_the_disk("disk-full")

    def reason(self, reason: Reason, exit_code: int, *, oom: bool) -> Reason:
        """Return the reason that counts: what was wanting only where it ended the agent itself."""
        if reason == "exited" and exit_code != 0 and self.disk.is_full():
            return self.disk.blame()
        killed = reason == "exited" and exit_code == _KILLED
        return "memory-limit" if killed and oom else reason

    def _until_end(self) -> Reason:
        while True:
            event = self._next_event()
            if event is not None and self._is_end(event):
                return "exited"
            if time.monotonic() >= self.deadline:
                return self._stop("time-limit")
            if event is None and (trouble := self.disk.look()) is not None:
                return self._stop_at_the_disk(trouble)
            self._sample()
            if self._has_ended_unseen():
                return "exited"

    def _next_event(self) -> Event | None:
        now = time.monotonic()
        pause = min(_TICK, self.deadline - now, self.sampler.log.due - now)
        try:
            return self.container.events.get(timeout=max(0.0, pause))
        except queue.Empty:
            return None

    def _is_end(self, event: Event) -> bool:
        if event.kind == "oom":
            self.oom = True
        elif event.kind == "lost":
            raise SandboxError(f"the container was lost: {event.what}")
        elif event.kind == "killed":
            # We have not asked for it: the engine is being stopped, or somebody else's hand.
            raise SandboxError(f"the container was ended from outside ({event.what})")
        return event.kind == "died"

    def _stop(self, reason: Reason) -> Reason:
        self._sample(now=True)
        self.container.stop(self.grace)
        return reason

    def _stop_at_the_disk(self, trouble: Trouble) -> Reason:
        if trouble != "disk-full":
            return self._stop(trouble)
        self.container.kill()  # a full disk harms everybody: there is no time for a grace period
        return self.disk.blame()

    def _sample(self, *, now: bool = False) -> None:
        if now or self.sampler.log.is_due:
            self.sampler.take(self.container.stats(), self.disk.used.bytes)

    def _has_ended_unseen(self) -> bool:
        if time.monotonic() < self._next_look:
            return False
        self._next_look = time.monotonic() + _LOOK
        return not self.container.is_running()
