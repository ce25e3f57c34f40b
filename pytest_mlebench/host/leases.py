"""Leases: what attempts use of a host, so that together they never use more than it has.

    with LeaseLedger().lease(LeaseClaim.of(limits), capacity, label="titanic/seed0") as devices:
        ...                     # waits for its turn first; *devices* are the ids of its GPUs

The ledger is a folder of the host that all workers and sessions of a user share. Every claim, held
or waiting, is a pair of files in it: its figures, and a lock that its process holds until it ends.
A claim whose process is dead, however it died, is struck by the next one who looks.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from filelock import FileLock, Timeout

from pytest_mlebench._files import write_text
from pytest_mlebench._units import show_count, show_duration, show_size, show_size_below
from pytest_mlebench.errors import ConfigError, ConfigErrors, HostTooSmall, SandboxError
from pytest_mlebench.host import allocation
from pytest_mlebench.host.hardware import host_cpus, host_memory
from pytest_mlebench.host.process_identity import Owner, host_name, this_process
from pytest_mlebench.limits import Limits

VARIABLE = "MLEBENCH_LEASES_DIR"
HERE = "here"
POLL = 0.5  # seconds between looks of one who waits

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_PATIENCE = 60.0  # seconds for the ledger itself, which nobody holds for longer than a look

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LeaseClaim:
    """What one attempt needs for itself alone."""

    cpus: float = 0
    memory_bytes: int = 0
    gpus: int = 0

    @classmethod
    def of(cls, limits: Limits) -> LeaseClaim:
        """Return the claim of an attempt that may use all of its limits."""
        return cls(limits.cpus, limits.memory_bytes, limits.gpus)

    def __bool__(self) -> bool:
        return bool(self.cpus or self.memory_bytes or self.gpus)

    def describe(self) -> str:
        """Return the claim for people."""
        parts = [
            f"{show_count(self.cpus)} CPUs" if self.cpus else "",
            f"{show_size(self.memory_bytes)} memory" if self.memory_bytes else "",
            f"{self.gpus} GPU{'' if self.gpus == 1 else 's'}" if self.gpus else "",
        ]
        return ", ".join(part for part in parts if part) or "nothing"


@dataclass(frozen=True)
class Capacity:
    """What a host has for attempts."""

    cpus: float
    memory_bytes: int
    gpus: tuple[str, ...] = ()  # device ids; one that may be shared is there more than once
    place: str = HERE  # another machine's name, if the attempts run there

    def holds(self, claim: LeaseClaim) -> int:
        """Return how many such claims fit at once; of empty ones as many as there are CPUs."""
        fits = [] if claim else [int(self.cpus)]
        if claim.cpus:
            fits.append(int(self.cpus / claim.cpus))
        if claim.memory_bytes:
            fits.append(self.memory_bytes // claim.memory_bytes)
        if claim.gpus:
            fits.append(len(self.gpus) // claim.gpus if len(set(self.gpus)) >= claim.gpus else 0)
        return min(fits)

    def without(self, claim: LeaseClaim, devices: Iterable[str] = ()) -> Capacity:
        """Return what is left beside a claim; what waits has no devices yet and takes the first."""
        left = Counter(self.gpus)
        chosen = tuple(devices) or tuple(dict.fromkeys(self.gpus))[: claim.gpus]
        left.subtract(chosen)
        gpus = tuple(device for device in dict.fromkeys(self.gpus) for _ in range(left[device]))
        return replace(
            self,
            cpus=self.cpus - claim.cpus,
            memory_bytes=self.memory_bytes - claim.memory_bytes,
            gpus=gpus,
        )

    def devices(self, claim: LeaseClaim) -> tuple[str, ...] | None:
        """Return the GPUs for a claim, the least used ones, or None if it does not fit."""
        free = Counter(self.gpus)
        if claim.cpus > self.cpus + 1e-9 or claim.memory_bytes > self.memory_bytes:
            return None
        if claim.gpus > len(free):
            return None
        return tuple(device for device, _ in free.most_common(claim.gpus))


@runtime_checkable
class Leasing(Protocol):
    """A sandbox whose attempts share a host; one that lacks these methods takes no leases."""

    def claim(self, limits: Limits) -> LeaseClaim:
        """Return what an attempt needs for itself alone."""

    def capacity(self, limits: Limits) -> Capacity:
        """Return what there is for attempts under these limits."""

    def make_room(self) -> None:
        """End what dead processes still run here, though their leases ended with them."""


@dataclass(frozen=True)
class LeaseEntry:
    """A claim in the ledger."""

    ticket: int
    owner: Owner
    claim: LeaseClaim
    place: str
    label: str
    since: float
    held: bool = False
    devices: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the entry in JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LeaseEntry:
        """Return the entry that ``to_dict`` wrote."""
        parts = {
            "owner": Owner(**data["owner"]),
            "claim": LeaseClaim(**data["claim"]),
            "devices": tuple(data["devices"]),
        }
        return cls(**(data | parts))

    def describe(self) -> str:
        """Return who has it, for people."""
        return f"{self.label or 'an attempt'} (process {self.owner.pid})"


class LeaseLedger:
    """All claims on a host, held and waiting."""

    def __init__(self, folder: Path | None = None, *, poll: float = POLL) -> None:
        self._folder = default_folder() if folder is None else folder
        self._poll = poll

    @contextmanager
    def lease(
        self,
        claim: LeaseClaim,
        capacity: Capacity,
        *,
        label: str = "",
        waiting: Callable[[str], object] = logger.info,
    ) -> Iterator[tuple[str, ...]]:
        """Wait until a claim fits, hold it for a block, and yield its GPUs.

        Whoever waits goes first come, first served; one may pass another only where that does not
        make the other wait any longer.
        """
        require(claim, capacity)
        entry, lock = self._enter(claim, capacity.place, label)
        try:
            told = ""
            while (devices := self._take(entry, capacity)) is None:
                message = self._why(entry)
                if message != told:
                    waiting(message)
                told = message
                time.sleep(self._poll)
            yield devices
        finally:
            self._leave(entry, lock)

    def entries(self) -> list[LeaseEntry]:
        """Return the claims of living processes, the oldest first."""
        with self._locked():
            return self._alive()

    def require_writable(self) -> None:
        """Refuse a folder in which no claim could be written."""
        try:
            with self._locked(), tempfile.NamedTemporaryFile(dir=self._folder, prefix=".try-"):
                pass
        except OSError as problem:
            raise _unusable(self._folder, problem) from None

    def dead(self, *, remove: bool) -> list[LeaseEntry]:
        """Return the claims whose processes have ended without a word, and strike them if asked."""
        with self._locked():
            known = {path: _read(path) for path in self._folder.glob("*.json")}
            dead = [entry for entry in known.values() if entry and not self._lives(entry)]
            for entry in dead if remove else ():
                self._strike(entry.ticket)
        return sorted(dead, key=lambda entry: entry.ticket)

    def _enter(self, claim: LeaseClaim, place: str, label: str) -> tuple[LeaseEntry, FileLock]:
        with self._locked():
            self._alive()
            entry = LeaseEntry(
                self._last_ticket() + 1, this_process(), claim, place, label, time.time()
            )
            lock = FileLock(self._lock_of(entry.ticket), thread_local=False)
            lock.acquire(timeout=0)
            self._write(entry)
        return entry, lock

    def _take(self, entry: LeaseEntry, capacity: Capacity) -> tuple[str, ...] | None:
        """Return the GPUs of a claim that fits now beside what is held and what came before."""
        with self._locked():
            others = [other for other in self._alive() if other.place == entry.place]
            free = capacity
            for other in others:
                if other.held:
                    free = free.without(other.claim, other.devices)
            for other in others:
                if not other.held and other.ticket < entry.ticket:
                    free = free.without(other.claim)
            devices = free.devices(entry.claim)
            if devices is not None:
                self._write(replace(entry, held=True, devices=devices))
            return devices

    def _why(self, entry: LeaseEntry) -> str:
        others = [
            other
            for other in self.entries()
            if other.place == entry.place and (other.held or other.ticket < entry.ticket)
        ]
        names = [other.describe() for other in others]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return f"waiting for {entry.claim.describe()}: in use by {', '.join(names[:3])}{more}"

    def _leave(self, entry: LeaseEntry, lock: FileLock) -> None:
        try:
            with self._locked():
                self._strike(entry.ticket)
        finally:
            lock.release()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        _make_private(self._folder)
        lock = FileLock(self._folder / "ledger.lock")
        try:
            held = lock.acquire(timeout=_PATIENCE)
        except Timeout:
            raise SandboxError(
                f"the ledger of leases has been locked for {show_duration(_PATIENCE)}: "
                f"look for a process that hangs and holds {lock.lock_file}"
            ) from None
        with held:
            yield

    def _alive(self) -> list[LeaseEntry]:
        """Return the claims of living processes and strike the others."""
        found = []
        for path in self._folder.glob("*.json"):
            if not path.is_file():
                continue  # nobody's claim: whoever made it may remove it
            entry = _read(path)
            if entry is not None and self._lives(entry):
                found.append(entry)
            else:
                self._strike(int(path.stem) if path.stem.isdecimal() else -1)
        return sorted(found, key=lambda entry: entry.ticket)

    def _last_ticket(self) -> int:
        """Return the highest number that a name in the folder has, whatever bears it."""
        stems = [path.stem for path in self._folder.iterdir()]
        return max((int(stem) for stem in stems if stem.isdecimal()), default=0)

    def _lives(self, entry: LeaseEntry) -> bool:
        if entry.owner.host == host_name():
            return not entry.owner.is_dead()
        # A process in another container has a number that says nothing here; its lock does.
        lock = FileLock(self._lock_of(entry.ticket))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return True
        lock.release()
        return False

    def _write(self, entry: LeaseEntry) -> None:
        write_text(self._folder / f"{entry.ticket}.json", json.dumps(entry.to_dict()))

    def _strike(self, ticket: int) -> None:
        (self._folder / f"{ticket}.json").unlink(missing_ok=True)
        self._lock_of(ticket).unlink(missing_ok=True)

    def _lock_of(self, ticket: int) -> Path:
        return self._folder / f"{ticket}.lock"


def default_folder() -> Path:
    """Return the ledger's folder: the environment's, else one per user in the system's /tmp."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).expanduser()
    # Not TMPDIR or XDG_RUNTIME_DIR: a job of cron or of another login has others, or none.
    temporary = Path("/tmp") if os.name == "posix" else Path(tempfile.gettempdir())
    return temporary / f"mlebench-leases-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


def require(claim: LeaseClaim, capacity: Capacity) -> None:
    """Refuse a claim that would wait for ever, naming all numbers and the options to change."""
    host = "this host" if capacity.place == HERE else capacity.place
    lacks = []
    if claim.cpus > capacity.cpus:
        lacks.append(
            f"the limit of {show_count(claim.cpus)} CPUs is more than the "
            f"{show_count(capacity.cpus)} that {host} has: "
            f"use --mle-cpus={show_count(capacity.cpus)} or fewer"
        )
    if claim.memory_bytes > capacity.memory_bytes:
        lacks.append(
            f"the memory limit of {show_size(claim.memory_bytes)} is more than the "
            f"{show_size(capacity.memory_bytes)} that {host} has: "
            f"use --mle-memory={show_size_below(capacity.memory_bytes)} or less"
        )
    if claim.gpus > (number := len(set(capacity.gpus))):
        lacks.append(
            f"the limit of {claim.gpus} GPUs is more than the {number} that {host} has: "
            f"use --mle-gpus={number} or fewer"
        )
    if lacks:
        raise ConfigErrors(map(HostTooSmall, lacks))


def host_capacity(gpus: Iterable[str] = ()) -> Capacity:
    """Return what this host has."""
    return Capacity(host_cpus(), host_memory(), tuple(gpus), here())


def here() -> str:
    """Return the place of attempts of this process: the host, or what Slurm has given of it.

    Jobs of one node lease from what each was given, and not from each other.
    """
    job = allocation.job()
    return HERE if job is None else f"Slurm's job {job}"


@contextmanager
def lease_for(
    sandbox: object, limits: Limits, *, label: str, waiting: Callable[[str], object]
) -> Iterator[tuple[str, ...]]:
    """Hold the lease of an attempt for a block; none is needed where a sandbox shares no host."""
    if not isinstance(sandbox, Leasing) or not (claim := sandbox.claim(limits)):
        yield ()
        return
    capacity = sandbox.capacity(limits)
    with LeaseLedger().lease(claim, capacity, label=label, waiting=waiting) as devices:
        sandbox.make_room()
        yield devices


def _read(path: Path) -> LeaseEntry | None:
    try:
        return LeaseEntry.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):  # another version's, or nobody's
        return None


def _unusable(folder: Path, problem: OSError) -> ConfigError:
    return ConfigError(
        f"cannot keep leases in {folder}: {problem.strerror or problem}: "
        f"choose another folder with {VARIABLE}"
    )


def _make_private(folder: Path) -> None:
    """Make the folder, or refuse one in which somebody else could write."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError as problem:
        raise _unusable(folder, problem) from None
    own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    if not stat.S_ISDIR(status.st_mode) or not own:
        raise ConfigError(
            f"cannot keep leases in {folder}: it is not a folder of your own: "
            f"choose another folder with {VARIABLE}"
        )
    if os.name == "posix" and status.st_mode & _WRITABLE_BY_OTHERS:
        raise ConfigError(
            f"cannot keep leases in {folder}: others may write there "
            f"(mode {stat.S_IMODE(status.st_mode):04o}): chmod 700 {folder}"
        )
