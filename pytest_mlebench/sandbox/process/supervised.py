"""The session's side of a supervisor: start it, wait for it, make sure that it ends."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
import warnings

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.sandbox.process.launch import forget_descriptors
from pytest_mlebench.sandbox.process.order import Function, Order
from pytest_mlebench.sandbox.process.process_tree import kill_by_variable
from pytest_mlebench.sandbox.process.supervisor import MAX_PORTS, READY, ProcessEnding, supervise
from pytest_mlebench.sandbox.process.zygote import Zygote

_zygote = Zygote()  # starts nothing before it is needed


class Supervised:
    """A supervisor at work; leaving the block ends it and everything below it."""

    def __init__(self, order: Order, function: Function | None) -> None:
        self._home = order.home
        self._began = time.monotonic()
        self._pid = 0
        self._control, theirs = socket.socketpair()
        with theirs:
            if function is None:
                _zygote.supervise(theirs)
                self._control.sendall(json.dumps(order.to_dict()).encode() + b"\n")
            else:
                self._pid = _fork(order, function, theirs)

    def __enter__(self) -> Supervised:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # it has ended
            self._control.shutdown(socket.SHUT_WR)
        self._read()  # to its end, which is the supervisor's
        self._control.close()
        if self._pid:
            os.waitpid(self._pid, 0)

    def wait_for_start(self) -> list[socket.socket]:
        """Wait until the agent runs; return the sockets that its own network has for us."""
        word, descriptors, _, _ = socket.recv_fds(self._control, len(READY), MAX_PORTS)
        if word != READY:
            answer = word + self._read()
            raise SandboxError(
                json.loads(answer)["failed"] if answer else "the agent's supervisor was lost"
            )
        return [socket.socket(fileno=descriptor) for descriptor in descriptors]

    def wait_for_end(self) -> ProcessEnding:
        """Wait until the agent and everything it started has ended.

        A supervisor that is lost while an agent runs is the agent's failure: whoever finds a way to
        kill it must not get another try.
        """
        answer = json.loads(self._read() or b"null")
        if answer is None:
            kill_by_variable(f"HOME={self._home}")  # nobody else looks after the agent any more
            seconds = time.monotonic() - self._began
            return ProcessEnding("sandbox-lost", seconds, problem="the supervisor was lost")
        if "failed" in answer:
            raise SandboxError(answer["failed"])
        return ProcessEnding(**(answer | {"walls": tuple(answer["walls"])}))

    def _read(self) -> bytes:
        parts = []
        with contextlib.suppress(ConnectionResetError):  # it was killed with our order unread
            while part := self._control.recv(1 << 16):
                parts.append(part)
        return b"".join(parts)


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
