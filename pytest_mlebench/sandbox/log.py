"""The agent's output on its way to ``run.log``: written at once, bounded, without secrets.

    with LogWriter(job.log, max_bytes=limits.log_bytes, secrets=agent.secrets()) as log:
        log.write(chunk)        # whatever came, however long: `tail -f` sees it now
    log.bytes, log.dropped      # what was said, and how much of it is not in the file

The beginning and the last lines are kept; what lies between is dropped once the bound is reached.
Memory does not grow with the output.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_mlebench.sandbox.redact import Mask

_END = 64 * 1024  # bytes of the end that are kept of an output that is too long


class LogWriter:
    """A file that takes a stream of bytes."""

    def __init__(self, path: Path, *, max_bytes: int, secrets: Iterable[str] = ()) -> None:
        self.bytes = 0
        self.dropped = 0
        self._mask = Mask(secrets)
        self._end = bytearray()
        self._end_bytes = min(_END, max_bytes // 2)
        self._left = max_bytes - self._end_bytes
        self._file = path.open("wb", buffering=0)

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, chunk: bytes) -> None:
        """Take some output."""
        self.bytes += len(chunk)
        self._put(self._mask.feed(chunk))

    def close(self) -> None:
        """Write what was held back; more than once does no harm."""
        if self._file.closed:
            return
        self._put(self._mask.finish())
        if self.dropped:
            self._file.write(b"\n[mlebench: %d bytes were dropped here]\n" % self.dropped)
        self._file.write(self._end)
        self._file.close()

    def _put(self, text: bytes) -> None:
        now = text[: self._left]
        self._left -= len(now)
        if now:
            self._file.write(now)
        self._end += text[len(now) :]
        surplus = len(self._end) - self._end_bytes
        if surplus > 0:
            del self._end[:surplus]
            self.dropped += surplus
