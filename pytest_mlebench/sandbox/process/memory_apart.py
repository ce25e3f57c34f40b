"""Memory that belongs to an agent and to none of its processes: shared memory, segments, queues.

It is counted where no control group does it. What is counted is seen through descriptors that the
first process inside has opened: they show its namespaces, not ours.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from pytest_mlebench.sandbox.nameless_files import held_open

_CHUNK = 1 << 20


def shared_memory(descriptors: Mapping[str, int], processes: Iterable[int]) -> int:
    """Return the bytes in /dev/shm, in System V segments and queues, in files without a name."""
    memfd = held_open(processes, lambda link, _: link.startswith("/memfd:"))  # see memfd_create(2)
    total = sum(memfd.values())
    if (folder := descriptors.get("/dev/shm")) is not None:
        status = os.fstatvfs(folder)
        total += (status.f_blocks - status.f_bfree) * status.f_frsize
    total += _column(descriptors.get("/proc/sysvipc/shm"), "rss")
    return total + _column(descriptors.get("/proc/sysvipc/msg"), "cbytes")


def _column(descriptor: int | None, name: str) -> int:
    """Return the sum of a column of a table in /proc/sysvipc, see sysvipc(7)."""
    if descriptor is None:
        return 0
    text = b""
    while part := os.pread(descriptor, _CHUNK, len(text)):
        text += part
    head, *rows = text.decode("ascii").splitlines()
    place = head.split().index(name)
    return sum(int(row.split()[place]) for row in rows)
