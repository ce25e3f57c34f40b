"""Watch over one agent: a process of its own between the session and the agent's tree.

It adopts every orphan of the agent, so that no daemon escapes; it ends the tree when the agent
ends, when a limit is reached, when it is told to, and when the session is no more. It is a fresh
interpreter for a command and a copy of the session for a Python function.

The session's end of the socket gets one byte when the agent has started (with a listening socket
for each of the order's ports, if the agent has a network of its own) and a JSON object when all is
over.
Closing it means: stop.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.sandbox import Reason
from pytest_mlebench.sandbox.disk import DiskGuard
from pytest_mlebench.sandbox.log import LogWriter
from pytest_mlebench.sandbox.process import kernel
from pytest_mlebench.sandbox.process.launch import Function, Order, start
from pytest_mlebench.sandbox.process.process_tree import Tree, descendants, memory

READY = b"!"
MAX_PORTS = 16

# Daemons that would do for the agent what it may not do itself: start something outside.
_DOORS = (
    *("/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock"),
    *("/run/user/{uid}/docker.sock", "/run/user/{uid}/podman/podman.sock"),
    *("/run/user/{uid}/bus", "/run/user/{uid}/systemd/private"),
    *("/run/dbus/system_bus_socket", "/run/systemd/private"),
)

_SAMPLE = 0.1  # seconds between two looks at the tree, at least
_SLOWEST = 1.0
_EFFORT = 0.02  # the part of a CPU that looking may take
_SHORT_GRACE = 2.0
_PATIENCE = 30.0  # seconds for killed processes to disappear


@dataclass(frozen=True)
class ProcessEnding:
    """How an agent ended."""

    reason: Reason
    exit_code: int | None
    seconds: float
    peak_memory_bytes: int | None  # None for one that ended before anybody could look
    cpu_seconds: float
    log_dropped: int
    survivors: int


def main() -> None:
    """Supervise the order that comes as one line of JSON through the socket on descriptor 0."""
    control = socket.socket(fileno=os.dup(0))
    with control.makefile("rb") as file:
        order = Order.from_dict(json.loads(file.readline()))
    supervise(order, None, control)


def supervise(order: Order, function: Function | None, control: socket.socket) -> NoReturn:
    """Run the agent to its end, tell the session, and leave this process."""
    status = 1
    try:
        try:
            answer = asdict(_Watch(order, control).run(function))
            status = 0
        except SandboxError as problem:
            answer = {"failed": str(problem)}
        except Exception as problem:
            answer = {"failed": f"the supervisor failed: {type(problem).__name__}: {problem}"}
        Tree().kill(_PATIENCE)
        with contextlib.suppress(OSError):  # if there is a session any more to tell
            control.sendall(json.dumps(answer).encode())
    finally:
        os._exit(status)


class _Watch:
    """The loop around one agent."""

    def __init__(self, order: Order, control: socket.socket) -> None:
        self._order = order
        self._control = control
        self._session = os.getppid()
        self._told_to_stop = False
        self._silent = False  # nobody has the other end of the output any more
        self._peak = 0
        self._next_sample = 0.0

    def run(self, function: Function | None) -> ProcessEnding:
        """Start the agent, wait for the first reason to end it, and end it."""
        wakeups = self._handle_signals()
        kernel.adopt_orphans()
        listeners = self._isolate()
        self._log = LogWriter(
            Path(self._order.log),
            max_bytes=self._order.log_bytes,
            secrets=self._order.secrets,
        )
        self._disk = DiskGuard(Path(self._order.home), limit=self._order.disk_bytes, skip=["data"])
        self._began = time.monotonic()
        pid, self._output = start(self._order, function)
        os.set_blocking(self._output, False)
        self._tell_ready(listeners)
        self._poll = select.poll()
        for descriptor in (self._output, self._control.fileno(), wakeups):
            self._poll.register(descriptor, select.POLLIN)
        self._tree = Tree(pid)
        reason = self._wait()
        seconds = time.monotonic() - self._began
        survivors = self._end(reason)
        # a function's first memory is its share of the session's, which says nothing about it
        largest = 0 if function else resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self._peak = max(self._peak, largest * (1024 if kernel.LINUX else 1))
        return self._ending(reason, seconds, survivors)

    def _handle_signals(self) -> int:
        """Let signals only wake the loop; return the descriptor that tells of them."""
        wakeups, wake = os.pipe()
        for descriptor in (wakeups, wake):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the session decides what Ctrl-C means
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._stop)
        return wakeups

    def _stop(self, *_: object) -> None:
        self._told_to_stop = True

    def _isolate(self) -> list[socket.socket]:
        """Bind the data into the workspace if the kernel lets us; cut the network if asked."""
        data = Path(self._order.home) / "data"
        if not kernel.can_isolate(self._order.home, network=self._order.offline):
            if self._order.offline:
                raise SandboxError("the kernel gives the agent no network of its own")
            return []
        kernel.isolate(network=self._order.offline)
        if data.is_symlink():  # better a real folder: many tools do not look behind a link
            data.unlink()
            data.mkdir()
            kernel.bind_read_only(self._order.data, str(data))
        for path in _DOORS:
            kernel.cover(path.format(uid=os.getuid()))
        if not self._order.offline:
            return []
        return [socket.create_server(("127.0.0.1", port)) for port in self._order.ports]

    def _tell_ready(self, listeners: list[socket.socket]) -> None:
        if listeners:
            socket.send_fds(self._control, [READY], [one.fileno() for one in listeners])
        else:
            self._control.sendall(READY)
        for listener in listeners:
            listener.close()

    def _wait(self) -> Reason:
        """Wait until the agent ends or must end."""
        deadline = self._began + self._order.time_seconds
        while True:
            now = time.monotonic()
            self._listen(min(self._next_sample, deadline) - now)
            self._tree.reap()
            if self._tree.status is not None:
                return "exited"
            if self._told_to_stop or os.getppid() != self._session:
                return "interrupted"
            if time.monotonic() >= deadline:
                return "time-limit"
            if (reason := self._sample()) is not None:
                return reason

    def _listen(self, seconds: float) -> None:
        """Take in output, and whatever else happens, for at most so long."""
        for descriptor, event in self._poll.poll(max(0.0, seconds) * 1000):
            if descriptor == self._output:
                self._take_output()
            elif descriptor == self._control.fileno():
                self._told_to_stop = True  # nothing is ever said after the order: it was closed
                self._poll.unregister(descriptor)
            elif event & select.POLLIN:
                os.read(descriptor, 4096)

    def _take_output(self) -> bool:
        """Log one chunk of output and tell whether there may be more."""
        if self._silent:
            return False
        try:
            data = os.read(self._output, 1 << 16)
        except BlockingIOError:
            return False
        if not data:
            self._poll.unregister(self._output)
            self._silent = True
            return False
        self._log.write(data)
        return True

    def _sample(self) -> Reason | None:
        """Look at the tree from time to time and tell which limit it has crossed."""
        began = time.monotonic()
        if began < self._next_sample:
            return None
        found = descendants(os.getpid())
        occupied = memory(found, self._order.memory_bytes)
        self._peak = max(self._peak, occupied)
        now = time.monotonic()
        self._next_sample = now + min(max(_SAMPLE, (now - began) / _EFFORT), _SLOWEST)
        if occupied > self._order.memory_bytes:
            return "memory-limit"
        if self._disk.is_exceeded():
            return "disk-limit"
        return "process-limit" if len(found) > self._order.pids else None

    def _end(self, reason: Reason) -> int:
        """End the tree, gently if it may have something to save; return how many survive."""
        grace = self._order.grace_seconds
        if reason in {"time-limit", "interrupted"}:
            self._tree.send(signal.SIGTERM)
            # somebody waits at a terminal, or nobody waits at all
            grace = min(grace, _SHORT_GRACE) if reason == "interrupted" else grace
            deadline = time.monotonic() + grace
            while self._tree.reap() and (left := deadline - time.monotonic()) > 0:
                self._listen(min(left, _SAMPLE))
        survivors = self._tree.kill(_PATIENCE)
        while self._take_output():
            pass
        self._log.close()
        return survivors

    def _ending(self, reason: Reason, seconds: float, survivors: int) -> ProcessEnding:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ProcessEnding(
            reason=reason,
            exit_code=_exit_code(self._tree.status),
            seconds=seconds,
            peak_memory_bytes=self._peak or None,
            cpu_seconds=used.ru_utime + used.ru_stime,
            log_dropped=self._log.dropped,
            survivors=survivors,
        )


def _exit_code(status: int | None) -> int | None:
    """Return an exit code as shells and container engines write it: 137 for SIGKILL."""
    if status is None:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
