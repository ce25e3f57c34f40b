"""Files that have no name any more and still occupy a disk: processes hold them open or mapped.

A descriptor that is on its way through a unix socket is seen in neither place; the free space of
the disk is what tells of such files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

_DELETED = " (deleted)"  # how /proc marks a file that has no name any more, see proc(5)
_BLOCK = 512  # bytes, what st_blocks counts, see stat(2)
_FIELDS = 6  # of a line in /proc/PID/maps: addresses, rights, offset, device, inode, path

Inode = tuple[int, int]  # device and number


def held_open(
    processes: Iterable[int], wanted: Callable[[str, os.stat_result], bool]
) -> dict[Inode, int]:
    """Return the bytes of files that processes hold open though their names are gone.

    *wanted* gets the link in /proc and the status of a file; processes that have ended, or are
    closed to us, count as nothing.
    """
    found: dict[Inode, int] = {}
    for pid in processes:
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # it has just been closed
                    link = str(Path(entry.path).readlink())
                    if link.endswith(_DELETED) and wanted(link, status := entry.stat()):
                        found[status.st_dev, status.st_ino] = status.st_blocks * _BLOCK
    return found


def held_mapped(processes: Iterable[int], devices: Collection[int]) -> dict[Inode, int]:
    """Return the bytes of files on *devices* that are mapped though their names are gone.

    Who may not look at the files themselves (see proc(5) on map_files) learns of the mapped part.
    """
    found: dict[Inode, int] = {}
    for pid in processes:
        for addresses, inode in _deleted_mappings(pid):
            if inode[0] not in devices:
                continue
            try:
                status = Path(f"/proc/{pid}/map_files/{addresses}").stat()
                found[inode] = status.st_blocks * _BLOCK
            except OSError:
                first, _, last = addresses.partition("-")
                found[inode] = found.get(inode, 0) + int(last, 16) - int(first, 16)
    return found


def _deleted_mappings(pid: int) -> Iterator[tuple[str, Inode]]:
    """Yield the addresses and the inode of every mapping of a file whose name is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
            fields = line.split(maxsplit=_FIELDS - 1)
            if len(fields) == _FIELDS and fields[5].endswith(_DELETED):
                major, _, minor = fields[3].partition(":")
                device = os.makedev(int(major, 16), int(minor, 16))
                yield fields[0], (device, int(fields[4]))
