"""How far an archive is unpacked: bytes of its members, reported on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from zipfile import ZipInfo

Report = Callable[[int, int], None]  # receives how many bytes are unpacked, of how many


def reported(members: Sequence[ZipInfo], report: Report) -> Iterator[ZipInfo]:
    """Yield members, and report before each what those before it had."""
    total, done = sum(info.file_size for info in members), 0
    for info in members:
        report(done, total)
        yield info
        done += info.file_size


def times(count: int, report: Report) -> Report:
    """Return a report for one of several shares that are alike."""
    return lambda done, total: report(count * done, count * total)
