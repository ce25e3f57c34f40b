"""How much an agent has written, and when that is too much.

No engine bounds a bind mount, few bound a container's own layer, and nobody bounds a folder of the
host. So all of them are measured while the agent runs: the free space of the disks tells every
second whether it may be too much, a walk over the files then tells whether it is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from pytest_mlebench._units import show_size
from pytest_mlebench.errors import SandboxError

RESERVE = 10**9  # bytes that stay free on every disk we know of, whatever the limits say

_STEP = 20_000  # entries of a walk between two looks at the clock
_REST = 20  # a measurement is followed by a rest so many times as long
_REST_AT_LEAST = 10.0  # seconds


class DiskMeter:
    """Measures a tree a little at a time, so that millions of files hold nobody up."""

    def __init__(self, root: Path, skip: Collection[str] = ()) -> None:
        self._root = root
        self._skip = {str(root / name) for name in skip}
        self._walk = self._measure()
        self.bytes = 0  # of the last complete measurement

    def step(self, entries: int = _STEP) -> bool:
        """Look at some more entries; tell whether that completed a measurement."""
        return any(next(self._walk) for _ in range(entries))

    def _measure(self) -> Iterator[bool]:
        """Yield once per entry, and True when a measurement is complete; for ever."""
        while True:
            total = 0
            folders = [str(self._root)]
            while folders:
                for size, folder in _entries(folders.pop()):
                    total += size
                    if folder is not None and folder not in self._skip:
                        folders.append(folder)
                    yield False
            self.bytes = total
            yield True


class DiskGuard:
    """Watches what one attempt writes to its folders and to its container, if it has one."""

    def __init__(
        self,
        home: Path,
        *,
        limit: int,
        layer: Callable[[], int] = int,
        engine_root: Path | None = None,
        skip: Collection[str] = (),  # folders in *home* that are not the agent's
    ) -> None:
        self._limit = limit
        self._layer = layer  # asks the engine for the size of the container's own layer
        self._layer_bytes = 0
        self._meter = DiskMeter(home, skip)
        self._disks = _disks(home, engine_root)
        self._free = self._free_now()
        self._due = 0.0
        self.peak = 0

    @property
    def bytes(self) -> int:
        """Return what the agent has written, as far as it is known."""
        return self._meter.bytes + self._layer_bytes

    def is_exceeded(self) -> bool:
        """Tell whether the agent has written more than it may; cheap enough for every second."""
        free = self._free_now()
        vanished = sum(max(0, before - now) for before, now in zip(self._free, free, strict=True))
        suspicious = self.bytes + vanished > self._limit
        if time.monotonic() >= self._due or suspicious:
            self._measure(free)
        for disk, left in zip(self._disks, free, strict=True):
            if left < RESERVE and self.bytes <= self._limit:
                raise SandboxError(
                    f"the disk that holds {disk} is nearly full: {show_size(left)} are left, "
                    f"the agent wrote {show_size(self.bytes)} of {show_size(self._limit)} allowed"
                )
        return self.bytes > self._limit

    def _measure(self, free: list[int]) -> None:
        started = time.monotonic()
        if not self._meter.step():
            return  # goes on the next time
        self._layer_bytes = self._layer()
        self._free = free
        self.peak = max(self.peak, self.bytes)
        now = time.monotonic()
        self._due = now + max(_REST_AT_LEAST, _REST * (now - started))

    def _free_now(self) -> list[int]:
        return [free_bytes(disk) for disk in self._disks]


def free_bytes(path: Path) -> int:
    """Return what is left on the disk that holds *path*."""
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


def _disks(home: Path, engine_root: Path | None) -> list[Path]:
    """Return one folder on each disk that the agent's bytes may land on."""
    found = {home.stat().st_dev: home}
    for folder in (engine_root, *engine_root.parents) if engine_root else ():
        try:
            found.setdefault(folder.stat().st_dev, folder)
        except OSError:
            continue  # an engine's folder is closed to others; the one above tells the same disk
        break
    return list(found.values())


def _entries(folder: str) -> Iterator[tuple[int, str | None]]:
    """Yield the bytes of every entry, and its path if it is a folder; never follow a link."""
    try:
        with os.scandir(folder) as found:
            for entry in found:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                is_folder = entry.is_dir(follow_symlinks=False)
                yield status.st_blocks * 512, entry.path if is_folder else None
    except OSError:
        return  # gone, closed to us or nested too deeply: the free space still tells
