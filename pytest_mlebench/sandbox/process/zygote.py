"""A process that has everything loaded which a supervisor needs, and forks one whenever asked.

Starting an interpreter and importing costs more than everything else that happens around a short
attempt. So that is done once per session; the zygote, which has one thread, opens nothing and knows
nothing of the session, is copied for every attempt. It ends with the session.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import NoReturn

from pytest_mlebench.sandbox.process.order import Order
from pytest_mlebench.sandbox.process.supervisor import supervise

_WORD = b"+"
_PACKAGE = Path(__file__).parents[3]
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from pytest_mlebench.sandbox.process import zygote; zygote.main()"
)


class Zygote:
    """The session's side: a zygote that starts when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._door: socket.socket | None = None
        self._owner = 0  # a copy of the session must not talk to its zygote

    def supervise(self, control: socket.socket) -> None:
        """Start a supervisor that has *control*; its order is what comes through it first."""
        with self._lock:
            door = self._door
            if door is None or self._owner != os.getpid():
                door = self._start()
            try:
                socket.send_fds(door, [_WORD], [control.fileno()])
            except OSError:  # somebody has killed it
                socket.send_fds(self._start(), [_WORD], [control.fileno()])

    def _start(self) -> socket.socket:
        door, theirs = socket.socketpair()
        self._door, self._owner = door, os.getpid()
        command = [sys.executable, "-I", "-S", "-c", _START, str(_PACKAGE)]
        with theirs:
            process = subprocess.Popen(
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C at the terminal is for the session
                cwd="/",
                # whatever else is in ours may be a key, and is nobody's business down there
                env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"},
            )
        atexit.register(_end, door, process, os.getpid())
        return door


def main() -> None:
    """Fork a supervisor for every socket that comes through descriptor 0, until it is closed."""
    gc.freeze()  # copies of this process share what nobody touches
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a supervisor has ended
    with socket.socket(fileno=os.dup(0)) as door:
        while True:
            word, descriptors, _, _ = socket.recv_fds(door, len(_WORD), 1)
            if not word:
                return
            if os.fork() == 0:
                door.close()
                _become_supervisor(socket.socket(fileno=descriptors[0]))
            os.close(descriptors[0])


def _become_supervisor(control: socket.socket) -> NoReturn:
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        with control.makefile("rb") as file:
            order = Order.from_dict(json.loads(file.readline()))
        supervise(order, None, control)
    finally:
        os._exit(1)


def _end(door: socket.socket, process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() == owner:
        with contextlib.suppress(OSError):
            door.close()
        process.wait()
