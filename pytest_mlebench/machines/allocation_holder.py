"""The holder of an allocation: the batch script that keeps what Slurm has given while it is used.

Workers begin in its own step, each for a connection that has come by ``allocation_entry``, and so
do the keepers that they fork: these outlive the connection, the worker and the controller. When
there is nothing left to keep, the holder ends, and the allocation with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

FIRST_SECONDS = 120.0  # for the first worker to come
POLL_SECONDS = 0.3
MESSAGE_SECONDS = 5.0  # for a connection to say what it wants
MESSAGE_BYTES = 1 << 16
STREAMS = 3  # stdin, stdout, stderr
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PREFIX = "mlebench-allocation-"  # of folders in /tmp


def socket_path(job: str) -> Path:
    """Return where the holder of a job listens on its node; all steps of a job see one /tmp."""
    return Path("/tmp") / f"{_PREFIX}{job}" / "socket"


class AllocationHolder:
    """The process that an allocation lasts as long as."""

    def __init__(self, path: Path, idle_seconds: float) -> None:
        self._path = path
        self._idle_seconds = idle_seconds
        self._workers: dict[int, tuple[subprocess.Popen[bytes], socket.socket]] = {}
        self._signalled: set[int] = set()  # to end
        self._is_ending = False
        self._server: socket.socket | None = _listen(path)

    def run(self) -> None:
        """Start workers for those who come, until there is nothing left to keep."""
        # keepers belong to nobody: this makes them our children, and so known to be there
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for number in _ENDING:
            signal.signal(number, self._end)
        until = time.monotonic() + FIRST_SECONDS
        while True:
            self._accept()
            self._reap()
            if self._is_ending:
                self._close()  # at once: this process may be killed in a moment
                self._pass_on()
            if any(True for _ in self._kept()):
                until = time.monotonic() + self._idle_seconds
            elif self._is_ending or time.monotonic() > until:
                break
        self._close()

    def _close(self) -> None:
        """Let nobody come any more."""
        if self._server is not None:
            self._server.close()
            self._server = None
            shutil.rmtree(self._path.parent, ignore_errors=True)

    def _accept(self) -> None:
        """Start a worker for a connection, if one comes."""
        if self._server is None:
            time.sleep(POLL_SECONDS)
            return
        try:
            connection, _ = self._server.accept()
        except TimeoutError:
            return
        connection.settimeout(MESSAGE_SECONDS)
        with contextlib.suppress(OSError, ValueError):
            if user_of(connection) == os.getuid():
                self._start(connection)
                return
        connection.close()

    def _start(self, connection: socket.socket) -> None:
        message, streams, _, _ = socket.recv_fds(connection, MESSAGE_BYTES, STREAMS)
        try:
            words = json.loads(message)
            if len(streams) != STREAMS:
                raise ValueError("a connection without its streams")
            worker = subprocess.Popen(
                [sys.executable, *map(str, words)],
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                start_new_session=True,
            )
        finally:
            for number in streams:
                os.close(number)
        self._workers[worker.pid] = (worker, connection)

    def _reap(self) -> None:
        """Take note of processes that have ended, and let their connections end too."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid in self._workers:
                    worker, connection = self._workers.pop(pid)
                    worker.returncode = os.waitstatus_to_exitcode(status)
                    with connection, contextlib.suppress(OSError):
                        connection.sendall(bytes([worker.returncode & 0xFF]))

    def _kept(self) -> Iterator[int]:
        """Yield our workers, and then whatever they have forked that has outlived them.

        A process of another kind that somebody left behind is no reason to keep an allocation.
        """
        yield from self._workers
        for pid in _children():
            if pid not in self._workers and _is_fork_of_worker(pid):
                yield pid

    def _end(self, _number: int, _frame: object) -> None:
        self._is_ending = True

    def _pass_on(self) -> None:
        """Pass on that the job is to end: Slurm tells nobody else in this step."""
        for pid in list(self._kept()):  # workers first: they must not begin anything new
            if pid not in self._signalled:
                self._signalled.add(pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)


def _listen(path: Path) -> socket.socket:
    for place in path.parent.parent.glob(f"{_PREFIX}*"):
        if place == path.parent or _age(place) > FIRST_SECONDS:
            _remove_stale(place)
    path.parent.mkdir(mode=0o700)  # somebody else's is a FileExistsError
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    server.settimeout(POLL_SECONDS)
    return server


def _remove_stale(place: Path) -> None:
    """Remove the folder of an earlier holder of ours that was killed: nobody listens there."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as anybody:
        if place.lstat().st_uid == os.getuid():
            try:
                anybody.connect(str(place / "socket"))
            except (ConnectionRefusedError, FileNotFoundError):
                shutil.rmtree(place, ignore_errors=True)


def _age(place: Path) -> float:
    """Return the seconds since a folder was made: a young one's holder may be about to listen."""
    try:
        return time.time() - place.lstat().st_mtime
    except OSError:
        return 0.0


def user_of(connection: socket.socket) -> int:
    """Return the user at the other end of a socket (man 7 unix, SO_PEERCRED)."""
    layout = struct.Struct("3i")
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, layout.size)
    return int(layout.unpack(credentials)[1])


def _children() -> list[int]:
    """Return the processes whose parent this one is (man 5 proc: children, stat)."""
    own, found = os.getpid(), []
    with contextlib.suppress(FileNotFoundError):  # not every kernel has it
        return [int(word) for word in Path(f"/proc/{own}/task/{own}/children").read_text().split()]
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # the name before it may have spaces and brackets of its own
            if int(path.read_text().rpartition(")")[2].split()[1]) == own:
                found.append(int(path.parent.name))
    return found


def _is_fork_of_worker(pid: int) -> bool:
    """Tell whether a process has the command line of execnet's workers."""
    try:
        return b"sys.stdin.readline" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def main(arguments: list[str]) -> None:
    """Hold the allocation that this process is in: ``allocation_holder IDLE_SECONDS``."""
    AllocationHolder(socket_path(os.environ["SLURM_JOB_ID"]), float(arguments[0])).run()


if __name__ == "__main__":
    main(sys.argv[1:])
