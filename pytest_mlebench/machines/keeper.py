"""A keeper: the process of its own that holds an attempt, so that it outlives its connection.

It is a fork of the worker that began the attempt, in a session of its own: the lease, the sandbox,
the format check, the gateway and the snapshots are its children and threads. In the attempt's
folder are, as long as it lives,

.keeper        locked by the keeper: whoever cannot lock it knows that the attempt is running
.beat          when the controller was last asked, and answered: its lease lasts for the grace after
.stop          made to end the attempt at once
.outcome.json  written last: what the work raised, if it did
.keeper.log    what the keeper itself printed
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from pytest_mlebench import errors
from pytest_mlebench._files import write_text
from pytest_mlebench._units import show_duration
from pytest_mlebench.errors import MlebenchError, SandboxError
from pytest_mlebench.host.held_file import is_held
from pytest_mlebench.layout import AttemptFolder

POLL_SECONDS = 0.2
STOP_SECONDS = 90.0  # for an attempt that is told to end; then its processes are killed
STOP_PART = 1 / 3  # of a short grace, which may not leave as much

Work = Callable[[], None]


class Abandoned(SandboxError):
    """Nobody has been interested in an attempt for longer than its grace."""


def is_kept(folder: Path) -> bool:
    """Tell whether a keeper holds the attempt of a folder now."""
    return is_held(AttemptFolder(folder).keeper)


def boot_clock() -> float:
    """Return seconds that count on while the host sleeps, the same in all of its processes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def ending_seconds(grace: float) -> float:
    """Return how much of a grace is for the end of an attempt: it must be over with the grace."""
    return min(STOP_SECONDS, grace * STOP_PART)


def beat(folder: Path, asked_at: float | None = None) -> None:
    """Tell a keeper that somebody was interested when the controller was asked."""
    part = folder / f".beat.{os.getpid()}.{threading.get_ident()}"
    with contextlib.suppress(OSError):  # the folder may have been delivered and removed
        part.write_text(repr(boot_clock() if asked_at is None else asked_at))
        part.replace(folder / ".beat")


def start_keeper(
    folder: Path,
    work: Work,
    *,
    grace: float,
    renewed: float | None = None,
    after_kill: Work | None = None,
) -> None:
    """Let a process of its own do the work, and return when it has begun.

    Its lease lasts for the grace after *renewed* (now, if that is not given). What the work leaves
    running when its process is killed is ended by *after_kill*.
    """
    beat(folder, renewed)
    ready, begun = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # Python warns of forks beside threads; ours only wait for messages of the channel
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.close(ready)
        _detach(folder, work, grace, begun, after_kill)
    os.close(begun)
    os.waitpid(child, 0)  # it has forked once more: the keeper is nobody's child
    with os.fdopen(ready, "rb") as pipe:
        if pipe.read(1) != b"1":
            raise SandboxError(f"the keeper of {folder} did not start: see {folder}/.keeper.log")


def wait_for_end(folder: Path, *, tend: Work, is_stopping: Callable[[], bool]) -> None:
    """Wait until a keeper has ended, and raise what its work raised.

    Meanwhile *tend* is called again and again. An interrupt ends the attempt only where this
    process is to stop; where only the connection is lost, the keeper stays.
    """
    try:
        while is_kept(folder):
            tend()
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        if is_stopping():
            end(folder)
        raise
    _raise_outcome(folder)


def end(folder: Path) -> None:
    """End the attempt of a folder at once, and return when it has ended."""
    with contextlib.suppress(OSError):
        (folder / ".stop").touch()
    deadline = time.monotonic() + STOP_SECONDS + 10
    while is_kept(folder) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def clear(folder: Path) -> None:
    """Remove the files of a keeper that has ended."""
    for name in (".keeper", ".beat", ".stop", ".outcome.json", ".keeper.log"):
        (folder / name).unlink(missing_ok=True)


def _raise_outcome(folder: Path) -> None:
    try:
        kind, text = json.loads((folder / ".outcome.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise SandboxError(f"the keeper of {folder} was killed") from None
    if kind is None:
        return
    error = getattr(errors, kind, SandboxError)
    known = isinstance(error, type) and issubclass(error, MlebenchError)
    raise error(text) if known and error is not errors.UnknownName else SandboxError(text)


def _write_outcome(folder: Path, kind: str | None, text: str) -> None:
    write_text(folder / ".outcome.json", json.dumps((kind, text)))


def _detach(folder: Path, work: Work, grace: float, begun: int, after_kill: Work | None) -> None:
    """Become a process that belongs to nobody, and never return."""
    try:
        os.setsid()
        if os.fork() == 0:
            _keep(folder, work, grace, begun, after_kill)
    finally:
        os._exit(0)


def _keep(folder: Path, work: Work, grace: float, begun: int, after_kill: Work | None) -> None:
    _let_go_of_files(folder, begun)
    # before the lock, which a fork would share
    warden = None if after_kill is None else _start_warden(begun, after_kill)
    lock = os.open(AttemptFolder(folder).keeper, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    watch = _Watch(folder, grace)
    os.write(begun, b"1")
    os.close(begun)
    threading.Thread(target=watch.run, name="mlebench-keeper", daemon=True).start()
    outcome: tuple[str | None, str] = (None, "")
    try:
        work()
    except KeyboardInterrupt:
        outcome = ("SandboxError", watch.reason or "the attempt was interrupted on its host")
    except BaseException as error:  # whatever it is, whoever waits has to learn of it
        outcome = (type(error).__name__, str(error))
    _write_outcome(folder, *outcome)
    if warden is not None:
        os.write(warden, b"1")
    os._exit(0)  # frees the lock; nothing of the worker's is to be torn down here


def _start_warden(begun: int, after_kill: Work) -> int:
    """Let another process wait for the end of this one, and clean up unless it is told not to.

    Return where to tell it; that pipe ends with this process, however it ends.
    """
    watched, telling = os.pipe()
    ready, rising = os.pipe()
    if os.fork() != 0:
        os.close(watched)
        os.close(rising)
        os.read(ready, 1)  # until it is in a session of its own, or has ended
        os.close(ready)
        return telling
    try:
        os.setsid()  # what is killed with the keeper's group leaves this one alone
        os.close(begun)
        os.close(telling)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):  # are for the keeper
            signal.signal(number, signal.SIG_IGN)
        os.close(rising)
        if not os.read(watched, 1):
            after_kill()
    finally:
        os._exit(0)


def _let_go_of_files(folder: Path, begun: int) -> None:
    """Let go of all that was the worker's: its connection, its locks, the terminal.

    Every number is given to ``/dev/null`` and not closed: what believes to own it may close it
    later, when another file would have it.
    """
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(folder / ".keeper.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    for number in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        if number > 2 and number not in (begun, nothing):
            with contextlib.suppress(OSError):  # the one of the listing itself
                os.dup2(nothing, number, inheritable=False)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  # for the life of the process
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  # same
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115  # same


class _Watch:
    """Look for the order to stop, and for the end of everybody's interest."""

    def __init__(self, folder: Path, grace: float) -> None:
        self.reason: str | None = None
        self._folder = folder
        self._grace = grace
        self._renewed = self._beat() or boot_clock()
        self._main = threading.main_thread().ident

    def run(self) -> None:
        """Interrupt the work when it is time, and kill it when its lease is over."""
        until = None
        while until is None:
            time.sleep(POLL_SECONDS)
            until = self._end_of_patience()
        if self._folder.is_dir():
            with contextlib.suppress(OSError):  # for whoever asks, should it not end by itself
                _write_outcome(self._folder, "SandboxError", self.reason or "")
        if self._main is not None:
            signal.pthread_kill(self._main, signal.SIGINT)
        while boot_clock() < until:  # a host that has slept may be late already
            time.sleep(POLL_SECONDS)
        os.killpg(0, signal.SIGKILL)  # this process too; its children end with it in any case

    def _end_of_patience(self) -> float | None:
        """Return by when the work must have ended; None as long as it may go on."""
        if (self._folder / ".stop").exists():
            self.reason = "the session was ended"
            return boot_clock() + STOP_SECONDS
        self._renewed = max(self._renewed, self._beat())
        lease_ends = self._renewed + self._grace
        if boot_clock() <= lease_ends - ending_seconds(self._grace):
            return None
        lasted = show_duration(self._grace)
        self.reason = f"abandoned: no session has asked for it within its grace of {lasted}"
        return lease_ends

    def _beat(self) -> float:
        try:
            return float((self._folder / ".beat").read_text())
        except (OSError, ValueError):  # the folder has been removed
            return 0.0
