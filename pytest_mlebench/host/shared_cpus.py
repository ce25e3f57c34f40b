"""CPUs that processes share: each uses more than one only as long as others leave some.

There is a byte of a nameless file for each CPU, which whoever uses it has locked. The kernel lets
go of the locks of a process that ends, however it ends (fcntl(2), record locks).
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pytest_mlebench.host.hardware import host_cpus


class SharedCpus:
    """The CPUs of a file as this process sees them; its threads share what it has locked."""

    def __init__(self, descriptor: int, count: int | None = None) -> None:
        self._descriptor = descriptor
        self._count = count or host_cpus()
        self._held: set[int] = set()
        self._lock = threading.Lock()

    @contextmanager
    def taken(self, most: int) -> Iterator[int]:
        """Take as many as are free, *most* at most, until the block ends; yield their number."""
        mine = self._take(most)
        try:
            yield len(mine)
        finally:
            self._give_back(mine)

    def _take(self, most: int) -> list[int]:
        import fcntl  # late on purpose: not on every system

        mine: list[int] = []
        with self._lock:
            for number in set(range(self._count)) - self._held:
                if len(mine) >= most:
                    break
                try:
                    fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
                except OSError:  # another process has it
                    continue
                mine.append(number)
            self._held.update(mine)
        return mine

    def _give_back(self, mine: list[int]) -> None:
        import fcntl  # late on purpose: not on every system

        with self._lock:
            for number in mine:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, number)
            self._held.difference_update(mine)


@contextmanager
def offered() -> Iterator[int]:
    """Offer the CPUs of this host; yield the descriptor that processes inherit to share them."""
    with tempfile.TemporaryFile() as file:
        yield file.fileno()


@contextmanager
def joined(descriptor: int, count: int | None = None) -> Iterator[None]:
    """Let this process be one of those that share; it uses one CPU itself."""
    cpus = SharedCpus(descriptor, count)
    _joined.append(cpus)
    try:
        with cpus.taken(1):
            yield
    finally:
        _joined.remove(cpus)


@contextmanager
def further_cpus(wanted: int) -> Iterator[int]:
    """Yield how many CPUs beside its own this process may use: where it shares, the free ones."""
    if not _joined:
        yield wanted
        return
    with _joined[-1].taken(wanted) as found:
        yield found


_joined: list[SharedCpus] = []  # what this process shares, as its work need not know
