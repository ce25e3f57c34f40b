"""How much an agent has written, when that is too much, and who has filled a disk.

No engine bounds a bind mount, few bound a container's own layer, and nobody bounds a folder of the
host. So all of them are measured while the agent runs: the free space and the free inodes of the
disks tell every second whether it may be too much; a walk over the files, and a look at those
without a name that processes hold open or mapped, then tell whether it is.

A disk that runs full all the same ends the attempt. What that gives back, together with what the
agent has left, is the agent's share. If that is half of what vanished while it ran, the agent is to
blame; else somebody else is, and the attempt may be repeated.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_mlebench._units import show_count, show_size
from pytest_mlebench.errors import SandboxError
from pytest_mlebench.sandbox.nameless_files import held_mapped, held_open

Exceeded = Literal["disk-limit", "files-limit"]
Trouble = Literal["disk-limit", "files-limit", "disk-full"]
Kind = Literal["bytes", "files"]
KINDS: tuple[Kind, ...] = ("bytes", "files")

_STEP = 20_000  # entries of a walk between two looks at the clock
_REST = 20  # a measurement is followed by a rest so many times as long
_REST_AT_LEAST = 10.0  # seconds
_RELEASE_SECONDS = 5.0  # for a file system to give back what a process held that was killed


@dataclass(frozen=True)
class Amount:
    """Bytes, and files: an agent can use up either."""

    bytes: int = 0
    files: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.bytes + other.bytes, self.files + other.files)

    def of(self, kind: Kind) -> int:
        """Return one of the two."""
        return self.bytes if kind == "bytes" else self.files

    def since(self, before: Amount) -> Amount:
        """Return by how much this is more than *before*; less than nothing counts as nothing."""
        return Amount(max(0, self.bytes - before.bytes), max(0, self.files - before.files))


Free = Mapping[Path, Amount]  # what is left on each disk

RESERVE = Amount(10**9, 20_000)  # what stays free on every disk we know of, whatever the limits say
_UNCOUNTED = 1 << 62


class DiskMeter:
    """Measures a tree a little at a time, so that millions of files hold nobody up."""

    def __init__(self, root: Path, skip: Collection[str] = ()) -> None:
        self._root = root
        self._skip = {str(root / name) for name in skip}
        self._walk = self._measure()
        self._size = self._files = 0  # of the measurement that goes on
        self.found = Amount()  # by the last complete measurement, or more

    def step(self, entries: int = _STEP) -> bool:
        """Look at some more entries; tell whether that completed a measurement."""
        complete = any(next(self._walk) for _ in range(entries))
        if not complete:
            sizes = (max(self.found.bytes, self._size), max(self.found.files, self._files))
            self.found = Amount(*sizes)
        return complete

    def measure(self) -> None:
        """Look at everything, now."""
        self._walk = self._measure()
        while not self.step():
            pass

    def _measure(self) -> Iterator[bool]:
        """Yield once per entry, and True when a measurement is complete; for ever."""
        while True:
            self._size = self._files = 0
            folders = [str(self._root)]
            while folders:
                for size, folder in _entries(folders.pop()):
                    self._size += size
                    self._files += 1
                    if folder is not None and folder not in self._skip:
                        folders.append(folder)
                    yield False
            self.found = Amount(self._size, self._files)
            yield True


class DiskGuard:
    """Watches what one attempt writes to its folders and to its container, if it has one."""

    def __init__(
        self,
        home: Path,
        *,
        limit: Amount,
        layer: Callable[[], int] = int,
        processes: Callable[[], Iterable[int]] = tuple,
        engine_root: Path | None = None,
        skip: Collection[str] = (),  # folders in *home* that are not the agent's
        reserve: Amount = RESERVE,
    ) -> None:
        self._limit = limit
        self._layer = layer  # asks the engine for the size of the container's own layer
        self._processes = processes  # the agent's, by their numbers on this host
        self._elsewhere = Amount()  # what the last measurement found outside of *home*
        self._meter = DiskMeter(home, skip)
        self._disks = _disks(home, engine_root)
        self._reserve = reserve
        self._free = self._at_start = self._full = self._free_now()
        self._due = 0.0
        self.peak = 0
        for disk, free in self._at_start.items():
            if free.bytes < 2 * reserve.bytes or free.files < 2 * reserve.files:
                raise SandboxError(
                    f"the disk that holds {disk} has too little left to begin: {_show(free)}"
                )

    @property
    def used(self) -> Amount:
        """Return what the agent has written, as far as it is known."""
        return self._meter.found + self._elsewhere

    def look(self) -> Trouble | None:
        """Tell whether the agent has to end; cheap enough for every second."""
        free = self._free_now()
        suspected = self.used + _total_loss(self._free, free)
        if time.monotonic() >= self._due or exceeded_limit(suspected, self._limit):
            self._measure(free)
        if exceeded := exceeded_limit(self.used, self._limit):
            return exceeded
        return "disk-full" if self.is_full(free) else None

    def is_full(self, free: Free | None = None) -> bool:
        """Tell whether a disk is nearly full, and remember what was left."""
        self._full = self._free_now() if free is None else free
        return self._scarce(self._full) is not None

    def blame(self) -> Exceeded:
        """Return which limit the agent broke that filled a disk and has ended; else raise.

        Files without a name are gone with whoever held them: what has come back since ``is_full``
        was the agent's.
        """
        full = self._full
        disk, kind = self._scarce(full) or (self._disks[0], "bytes")
        self._measure_all()
        deadline = time.monotonic() + _RELEASE_SECONDS
        while not self._is_mostly_ours(disk, kind, full, self._free_now()):
            if time.monotonic() > deadline:
                raise SandboxError(
                    f"the disk that holds {disk} is nearly full, and not by the agent's doing: "
                    f"{_show(full[disk])} were left, the agent had {_show(self.used)}"
                )
            time.sleep(0.1)
        return "disk-limit" if kind == "bytes" else "files-limit"

    def _scarce(self, free: Free) -> tuple[Path, Kind] | None:
        """Return the disk that is nearly full, and of what, if there is one.

        Whoever has not caused it waits a little longer: the end of another attempt may help.
        """
        for disk, left in free.items():
            for kind in KINDS:
                ours = self._is_mostly_ours(disk, kind, free, free)
                reserve = self._reserve.of(kind)
                if left.of(kind) < (reserve if ours else reserve // 2):
                    return disk, kind
        return None

    def _is_mostly_ours(self, disk: Path, kind: Kind, full: Free, now: Free) -> bool:
        """Tell whether the agent has at least half of what vanished while it ran."""
        vanished = self._at_start[disk].since(full[disk]).of(kind)
        ours = self.used.of(kind) + now[disk].since(full[disk]).of(kind)
        return 2 * ours >= max(1, vanished)

    def _measure_all(self) -> None:
        self._elsewhere = Amount()
        with contextlib.suppress(SandboxError):  # an engine whose disk is full has other worries
            self._elsewhere = Amount(self._layer())
        self._meter.measure()

    def _measure(self, free: Free) -> None:
        started = time.monotonic()
        if not self._meter.step():
            return  # goes on the next time
        devices = {disk.stat().st_dev for disk in self._disks}
        nameless = _nameless(tuple(self._processes()), devices)
        self._elsewhere = Amount(self._layer()) + nameless
        self._free = free
        self.peak = max(self.peak, self.used.bytes)
        now = time.monotonic()
        self._due = now + max(_REST_AT_LEAST, _REST * (now - started))

    def _free_now(self) -> Free:
        return {disk: free_on(disk) for disk in self._disks}


def free_on(path: Path) -> Amount:
    """Return what is left on the disk that holds *path*; some file systems do not count files."""
    status = os.statvfs(path)
    files = status.f_favail if status.f_files else _UNCOUNTED
    return Amount(status.f_bavail * status.f_frsize, files)


def exceeded_limit(used: Amount, limit: Amount) -> Exceeded | None:
    """Return which limit is exceeded, if one is."""
    if used.bytes > limit.bytes:
        return "disk-limit"
    return "files-limit" if used.files > limit.files else None


def _nameless(processes: Collection[int], devices: Collection[int]) -> Amount:
    """Return what processes keep on disks though nobody finds it by a name."""
    found = held_mapped(processes, devices) | held_open(
        processes, lambda _, status: status.st_nlink == 0 and status.st_dev in devices
    )
    return Amount(sum(found.values()), len(found))


def _total_loss(before: Free, now: Free) -> Amount:
    losses = [before[disk].since(now[disk]) for disk in now]
    return sum(losses, Amount())


def _show(amount: Amount) -> str:
    files = "" if amount.files >= _UNCOUNTED else f" and {show_count(amount.files)} files"
    return f"{show_size(amount.bytes)}{files}"


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
