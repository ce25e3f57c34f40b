"""One at a time: a lock among threads, processes and hosts that a dead holder cannot keep.

Two locks in one. The operating system's file lock is let go the moment its holder dies, but some
network file systems keep it to one host or know none. So the holder also leaves a lease, a small
file that it renews every few seconds; who finds a lease that has not been renewed for a while, by
its own clock, takes it over.

``filelock.SoftFileLease`` is no replacement. It notices a dead process of this host at once and,
where two names can be exchanged in one step (``renameat2``), takes over the lease of a dead host.
On NFS and SMB, where stores of several hosts are, they cannot be exchanged: there it takes over
neither and waits until somebody removes its file (see ``break_lock_file`` in filelock 4.2).
"""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, SoftFileLock, Timeout

from pytest_mlebench._files import write_text
from pytest_mlebench._messages import Log

RENEW_SECONDS = 5.0
STALE_SECONDS = 300.0  # long enough for a holder whose one busy call keeps all its threads waiting
REMIND_SECONDS = 60.0
UNSUPPORTED = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}  # flock(2), link(2)


@dataclass(frozen=True)
class Holder:
    """Who holds a lease: a machine between two boots, a process, one turn of it."""

    host: str
    machine: str
    pid: int
    turn: str

    @classmethod
    def me(cls) -> Holder:
        """Return a new turn of this process."""
        return cls(socket.gethostname(), _machine(), os.getpid(), uuid.uuid4().hex)


class Busy(Exception):
    """Somebody else is at work, and we do not want to wait."""


@contextmanager
def exclusive(
    folder: Path, name: str, log: Log, *, wait: bool = True, stale: float = STALE_SECONDS
) -> Iterator[str]:
    """Hold *folder* alone, waiting for whoever holds it; yield the name of this turn."""
    waiting = _Waiting(name, log) if wait else None
    lock, native = _file_lock(folder, waiting)
    me = Holder.me()
    lease = _Lease(folder / ".lease", me)
    try:
        lease.take(waiting, native=native, stale=stale)
        with lease.renewed():
            yield me.turn
    finally:
        lease.drop()
        if lock is not None:
            lock.release()


def _file_lock(folder: Path, waiting: _Waiting | None) -> tuple[FileLock | None, bool]:
    """Return the held file lock, or none where the file system has no such thing."""
    lock = FileLock(folder / ".lock")
    while True:
        try:
            lock.acquire(timeout=0.5 if waiting and waiting.began else 0)
        except Timeout:
            if isinstance(lock, SoftFileLock):  # the library's fallback outlives a dead holder
                return None, False
            if waiting is None:
                raise Busy from None
            waiting.on(_read(folder / ".lease"))
        except NotImplementedError:
            return None, False
        except OSError as error:
            if error.errno in UNSUPPORTED:
                return None, False
            raise
        else:
            return lock, not isinstance(lock, SoftFileLock)


class _Waiting:
    """Log who is waited for: at once, and every minute after."""

    def __init__(self, name: str, log: Log) -> None:
        self.name, self.log = name, log
        self.began = 0.0
        self.logged = 0.0

    def on(self, holder: tuple[Holder, int] | None) -> None:
        now = time.monotonic()
        self.began = self.began or now
        if self.logged and now - self.logged < REMIND_SECONDS:
            return
        self.logged = now
        who = f"process {holder[0].pid} on {holder[0].host}" if holder else "another process"
        since = f" for {now - self.began:.0f} s" if now - self.began >= 1 else ""
        self.log(f"{self.name}: {who} is preparing it, waiting{since}")


class _Lease:
    """A file that says who is at work, renewed as long as that is true."""

    def __init__(self, path: Path, me: Holder) -> None:
        self.path, self.me = path, me
        self.beat = 0
        self.held = False

    def take(self, waiting: _Waiting | None, *, native: bool, stale: float) -> None:
        seen: tuple[Holder, int] | None = None
        since = time.monotonic()
        while not self._create():
            found = _read(self.path)
            if found != seen:
                seen, since = found, time.monotonic()
            # With the system's lock in hand, a lease of this very machine is a dead holder's.
            dead = native and found is not None and found[0].machine == self.me.machine
            if dead or time.monotonic() - since >= stale:
                self._remove(found)
                continue
            if waiting is None:
                raise Busy
            waiting.on(found)
            time.sleep(min(1.0, stale / 10))

    def _create(self) -> bool:
        draft = self.path.with_name(f".lease.{self.me.turn}")
        draft.write_text(self._text(), encoding="utf-8")
        try:
            os.link(draft, self.path)  # fails if it exists, on network file systems too
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in (*UNSUPPORTED, errno.EPERM):
                raise
            return self._create_without_links(draft)
        finally:
            draft.unlink(missing_ok=True)
        self.held = True
        return True

    def _create_without_links(self, draft: Path) -> bool:
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return False
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(draft.read_text(encoding="utf-8"))
        self.held = True
        return True

    def _remove(self, judged: tuple[Holder, int] | None) -> None:
        aside = self.path.with_name(f".lease.{self.me.turn}.stale")
        with suppress(FileNotFoundError):
            self.path.rename(aside)
            if _read(aside) != judged:  # renewed or taken in between: put it back
                with suppress(OSError):
                    os.link(aside, self.path)
            aside.unlink()

    @contextmanager
    def renewed(self) -> Iterator[None]:
        stop = threading.Event()
        thread = threading.Thread(target=self._renew, args=(stop,), daemon=True, name="mle-lease")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _renew(self, stop: threading.Event) -> None:
        while not stop.wait(RENEW_SECONDS):
            self.beat += 1
            with suppress(OSError):  # a full disk must not end the work that may free it
                write_text(self.path, self._text())

    def drop(self) -> None:
        found = _read(self.path)
        if self.held and found is not None and found[0] == self.me:
            self.path.unlink(missing_ok=True)

    def _text(self) -> str:
        return json.dumps({**vars(self.me), "beat": self.beat})


def _read(path: Path) -> tuple[Holder, int] | None:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        beat = int(facts.pop("beat"))
        return Holder(**facts), beat
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _machine() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return f"{socket.gethostname()}-{uuid.getnode()}"
