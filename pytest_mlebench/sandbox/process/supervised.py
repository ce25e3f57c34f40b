"""The session's side of a supervisor: start it, wait for it, make sure that it ends."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import warnings
from functools import lru_cache
from pathlib import Path
from typing import NoReturn

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.sandbox.process.launch import Function, Order, forget_descriptors
from pytest_mlebench.sandbox.process.process_tree import kill_by_variable
from pytest_mlebench.sandbox.process.supervisor import MAX_PORTS, READY, ProcessEnding, supervise

_PACKAGE = Path(__file__).parents[3]
_IMPORT = (
    "import sys; sys.path.insert(0, sys.argv[1]); from pytest_mlebench.sandbox.process import "
)
_SUPERVISE = _IMPORT + "supervisor; supervisor.main()"
_TRY_OFFLINE = _IMPORT + "kernel; sys.exit(not kernel.can_isolate(sys.argv[2], network=True))"


class Supervised:
    """A supervisor at work; leaving the block ends it and everything below it."""

    def __init__(self, order: Order, function: Function | None) -> None:
        self._home = order.home
        self._status: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._control, theirs = socket.socketpair()
        with theirs:
            if function is None:
                self._process = _spawn(theirs)
                self._control.sendall(json.dumps(order.to_dict()).encode() + b"\n")
            else:
                self._pid = _fork(order, function, theirs)

    def __enter__(self) -> Supervised:
        return self

    def __exit__(self, *_: object) -> None:
        self._control.close()
        self._reap()
        if self._process is not None and self._process.stderr is not None:
            self._process.stderr.close()

    def wait_for_start(self) -> list[socket.socket]:
        """Wait until the agent runs; return the sockets that its own network has for us."""
        word, descriptors, _, _ = socket.recv_fds(self._control, len(READY), MAX_PORTS)
        if word != READY:
            self._fail(word + self._read())
        return [socket.socket(fileno=descriptor) for descriptor in descriptors]

    def wait_for_end(self) -> ProcessEnding:
        """Wait until the agent and everything it started has ended."""
        answer = self._read()
        if not answer or b'"failed"' in answer:
            self._fail(answer)
        return ProcessEnding(**json.loads(answer))

    def _read(self) -> bytes:
        parts = []
        with contextlib.suppress(ConnectionResetError):  # it was killed with our order unread
            while part := self._control.recv(1 << 16):
                parts.append(part)
        return b"".join(parts)

    def _fail(self, answer: bytes) -> NoReturn:
        if answer:
            raise SandboxError(json.loads(answer)["failed"])
        status = self._reap()
        kill_by_variable(f"HOME={self._home}")  # nobody else looks after the agent any more
        raise SandboxError(f"the agent's supervisor was lost, exit status {status}{self._errors()}")

    def _reap(self) -> int:
        if self._process is not None:
            return self._process.wait()
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._status

    def _errors(self) -> str:
        if self._process is None or self._process.stderr is None:
            return ""
        lines = self._process.stderr.read().decode(errors="replace").splitlines()
        return f": {lines[-1]}" if lines else ""


@lru_cache(maxsize=1)
def can_go_offline() -> bool:
    """Tell whether the kernel gives an agent a network of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(_python(_TRY_OFFLINE, folder), check=False).returncode == 0


def _spawn(theirs: socket.socket) -> subprocess.Popen[bytes]:
    """Start a supervisor as a fresh interpreter, which forks and dies without side effects."""
    return subprocess.Popen(
        _python(_SUPERVISE),
        stdin=theirs.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C at the terminal is for the session
        cwd="/",
    )


def _fork(order: Order, function: Function, theirs: socket.socket) -> int:
    """Start a supervisor as a copy of the session: a function cannot go anywhere else."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # Python warns of threads that hold locks; what follows takes none but the function's own
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        forget_descriptors(theirs.fileno())
        supervise(order, function, theirs)
    finally:
        os._exit(1)


def _python(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", program, str(_PACKAGE), *arguments]
