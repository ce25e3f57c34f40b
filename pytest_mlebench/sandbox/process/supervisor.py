"""Watch over one agent: a process of its own between the session and the agent's walls.

It ends everything the agent started when the agent ends, when a limit is reached, when it is told
to, and when the session is no more. It is a child of the zygote for a command, and a copy of the
session for a Python function.

The session's end of the socket gets one byte when the agent has started (with a listening socket
for each of the order's ports, if the agent has a network of its own) and a JSON object when all is
over.
Closing it means: stop.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import select
import signal
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.host.usage import UsageLog
from pytest_mlebench.sandbox import Reason
from pytest_mlebench.sandbox.disk import Amount, DiskGuard
from pytest_mlebench.sandbox.log import LogWriter
from pytest_mlebench.sandbox.process import cgroup, kernel, own_disk, process_tree
from pytest_mlebench.sandbox.process.inside import LISTENER, TERMINATE
from pytest_mlebench.sandbox.process.launch import Started, start
from pytest_mlebench.sandbox.process.memory_apart import shared_memory
from pytest_mlebench.sandbox.process.order import Function, Order

READY = b"!"
MAX_PORTS = 16

Stop = Reason | Literal["disk-full"]  # why an agent is ended; who filled a disk turns out later

_SAMPLE = 0.1  # seconds between two looks at the processes, at least
_SLOWEST = 1.0
_EFFORT = 0.02  # the part of a CPU that looking may take
_SHORT_GRACE = 2.0
_PATIENCE = 30.0  # seconds for killed processes to disappear
_KILLED = 137  # 128 + SIGKILL


@dataclass(frozen=True)
class ProcessEnding:
    """How an agent ended."""

    reason: Reason
    seconds: float
    exit_code: int | None = None
    peak_memory_bytes: int | None = None  # None for one that ended before anybody could look
    cpu_seconds: float | None = None
    disk_bytes: int = 0
    log_dropped: int = 0
    oom_kills: int = 0
    survivors: int = 0
    walls: tuple[str, ...] = ()
    problem: str | None = None  # what became of the supervisor, if it was lost


def supervise(order: Order, function: Function | None, control: socket.socket) -> NoReturn:
    """Run the agent to its end, tell the session, and leave this process."""
    status = 1
    group = None
    try:
        if order.cgroup:
            group = cgroup.make(memory_bytes=order.limits.memory_bytes, pids=order.limits.pids)
        if "cgroup" in order.required and group is None:
            answer = {"failed": "cannot confine the agent: without cgroup it must not start"}
        else:
            answer = _answer(_Watch(order, control, group), function)
        process_tree.kill(_PATIENCE)
        if group is not None:
            group.remove()
        try:
            control.sendall(json.dumps(answer).encode())
        except OSError:  # there is no session any more to tell, nor to clean up
            if order.disk:
                own_disk.release(Path(order.home))
        status = 0
    finally:
        os._exit(status)


def _answer(watch: _Watch, function: Function | None) -> dict[str, Any]:
    """Return how the agent ended, or what we failed at.

    Who makes us fail while an agent runs is the agent, as far as anybody can tell.
    """
    try:
        return asdict(watch.run(function))
    except SandboxError as problem:
        return {"failed": str(problem)}
    except Exception as problem:
        text = f"the supervisor failed: {type(problem).__name__}: {problem}"
        if watch.seconds is None:
            return {"failed": text}
        return asdict(ProcessEnding("sandbox-lost", watch.seconds, problem=text))


class _Watch:
    """The loop around one agent."""

    def __init__(self, order: Order, control: socket.socket, group: cgroup.Cgroup | None) -> None:
        self._order = order
        self._control = control
        self._group = group
        self._contained = order.walls != "none"  # all processes end with the first one inside
        self._told_to_stop = False
        self._silent = False  # nobody has the other end of the output any more
        self._disk_full = False
        self._over = False  # the first process inside has said its last word
        self._status: int | None = None  # of the agent, once it has ended
        self._memory = self._peak = 0
        self._began: float | None = None

    @property
    def seconds(self) -> float | None:
        """Return how long the agent has been running, None if it has not started."""
        return None if self._began is None else time.monotonic() - self._began

    def run(self, function: Function | None) -> ProcessEnding:
        """Start the agent, wait for the first reason to end it, and end it."""
        wakeups = self._handle_signals()
        kernel.adopt_orphans()
        self._log = LogWriter(
            Path(self._order.log),
            max_bytes=self._order.limits.log_bytes,
            secrets=self._order.secrets,
        )
        self._disk = _disk_guard(self._order)
        self._started = start(self._order, function, self._group)
        self._began = time.monotonic()
        self._deadline = self._began + self._order.limits.time_seconds
        self._next_sample = self._began + _SAMPLE
        self._usage = UsageLog(Path(self._order.stats))
        self._tell_ready(self._started)
        os.set_blocking(self._started.output, False)
        self._poll = select.poll()
        watched = (self._started.output, self._started.channel, self._control, wakeups)
        for thing in watched:
            self._poll.register(thing, select.POLLIN)
        stop = self._wait()
        seconds = self.seconds or 0.0
        survivors = self._end(stop)
        # a function's first memory is its share of the session's, which says nothing about it
        largest = 0 if function else resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self._peak = max(self._peak, largest * (1024 if kernel.LINUX else 1))
        reason = self._judge() if stop == "disk-full" else stop
        return self._ending(reason, seconds, survivors)

    def _judge(self) -> Reason:
        """Return why an agent ended beside a full disk; who got through all the same has ended."""
        try:
            return self._disk.blame()
        except SandboxError:
            if self._status == 0:
                return "exited"
            raise

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

    def _tell_ready(self, started: Started) -> None:
        names = [name for name in started.descriptors if name.startswith(LISTENER)]
        listeners = [started.descriptors.pop(name) for name in names]
        if listeners:
            socket.send_fds(self._control, [READY], listeners)
        else:
            self._control.sendall(READY)
        for listener in listeners:
            os.close(listener)

    def _wait(self) -> Stop:
        """Wait until the agent ends or must end."""
        while True:
            self._listen(min(self._next_sample, self._deadline) - time.monotonic())
            process_tree.reap()
            if self._over:
                return self._reason_of_end()
            if self._told_to_stop:
                return "interrupted"
            if time.monotonic() >= self._deadline:
                return "time-limit"
            if (stop := self._sample()) is not None:
                return stop

    def _reason_of_end(self) -> Stop:
        """Tell whether the agent has ended by itself, for want of memory, or with a full disk."""
        if self._disk_full or self._disk.is_full():
            return "disk-full"
        killed = self._status is None or _exit_code(self._status) == _KILLED
        return "memory-limit" if killed and self._oom_kills() else "exited"

    def _listen(self, seconds: float) -> None:
        """Take in output, and whatever else happens, for at most so long."""
        for descriptor, event in self._poll.poll(max(0.0, seconds) * 1000):
            if descriptor == self._started.output:
                self._take_output()
            elif descriptor == self._started.channel.fileno():
                self._hear()
            elif descriptor == self._control.fileno():
                self._told_to_stop = True  # nothing is ever said after the order: it was closed
                self._poll.unregister(descriptor)
            elif event & select.POLLIN:
                os.read(descriptor, 4096)

    def _hear(self) -> None:
        """Note what the first process inside says of the agent, or that it is gone."""
        message = self._started.receive()
        if message is None:
            self._poll.unregister(self._started.channel)
        else:
            self._status = int(message[1])
        self._over = True

    def _take_output(self) -> bool:
        """Log one chunk of output and tell whether there may be more."""
        if self._silent:
            return False
        try:
            data = os.read(self._started.output, 1 << 16)
        except BlockingIOError:
            return False
        if not data:
            self._poll.unregister(self._started.output)
            self._silent = True
            return False
        with self._full_disk_noticed():
            self._log.write(data)
        return True

    @contextlib.contextmanager
    def _full_disk_noticed(self) -> Any:
        try:
            yield
        except OSError as problem:
            if problem.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise
            self._disk.is_full()
            self._disk_full = True

    def _sample(self) -> Stop | None:
        """Look at the processes from time to time and tell which limit they have crossed."""
        began = time.monotonic()
        if began < self._next_sample:
            return None
        stop = self._crossed()
        self._peak = max(self._peak, self._memory)
        if self._usage.is_due:
            self._usage.note(memory=self._memory, cpu=_cpu_seconds())
        now = time.monotonic()
        self._next_sample = now + min(max(_SAMPLE, (now - began) / _EFFORT), _SLOWEST)
        return stop

    def _crossed(self) -> Stop | None:
        if self._disk_full:
            return "disk-full"
        if self._group is not None:  # bounds memory and processes itself
            self._memory = self._group.memory_bytes()
            return self._disk.look()
        limit = self._order.limits.memory_bytes
        self._memory = process_tree.memory(_processes, limit, self._memory_apart)
        if self._memory > limit:
            return "memory-limit"
        return self._disk.look() or (
            "process-limit" if len(_processes()) > self._order.limits.pids else None
        )

    def _memory_apart(self) -> int:
        return shared_memory(self._started.descriptors, _descendants())

    def _oom_kills(self) -> int:
        return 0 if self._group is None else self._group.oom_kills()

    def _end(self, stop: Stop) -> int:
        """End the processes, gently if they may have something to save; return who survives."""
        grace = self._order.grace_seconds
        if stop in {"time-limit", "interrupted"}:
            self._ask_to_end()
            # somebody waits at a terminal, or nobody waits at all
            self._let_end(min(grace, _SHORT_GRACE) if stop == "interrupted" else grace)
        elif self._over and self._contained:
            self._let_end(_SHORT_GRACE)  # it is under way, by the kernel's hand
        survivors = process_tree.kill(_PATIENCE, children_only=self._contained)
        while self._take_output():
            pass
        for descriptor in self._started.descriptors.values():
            os.close(descriptor)
        with self._full_disk_noticed():
            self._log.close()
        return survivors

    def _let_end(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while process_tree.reap() and (left := deadline - time.monotonic()) > 0:
            self._listen(min(left, _SAMPLE))

    def _ask_to_end(self) -> None:
        if self._contained:
            with contextlib.suppress(OSError):  # it has just ended
                self._started.channel.sendall(TERMINATE)
        else:
            process_tree.send(signal.SIGTERM)

    def _ending(self, reason: Reason, seconds: float, survivors: int) -> ProcessEnding:
        return ProcessEnding(
            reason=reason,
            exit_code=_KILLED if self._status is None else _exit_code(self._status),
            seconds=seconds,
            peak_memory_bytes=self._peak or None,
            cpu_seconds=_cpu_seconds_of_ended(),
            disk_bytes=self._disk.peak,
            log_dropped=self._log.dropped,
            oom_kills=self._oom_kills(),
            survivors=survivors,
            walls=self._started.walls,
        )


def _disk_guard(order: Order) -> DiskGuard:
    home, limit = Path(order.home), Amount(order.limits.disk_bytes, order.limits.files)
    if order.disk:
        return own_disk.OwnDiskGuard(home, order.disk, limit=limit)
    return DiskGuard(home, limit=limit, processes=_descendants, skip=["data"])


def _processes() -> list[process_tree.Process]:
    return process_tree.descendants(os.getpid())


def _cpu_seconds() -> float:
    return round(_cpu_seconds_of_ended() + sum(one.cpu_seconds for one in _processes()), 2)


def _cpu_seconds_of_ended() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _descendants() -> list[int]:
    return [process.pid for process in _processes()]


def _exit_code(status: int) -> int:
    """Return an exit code as shells and container engines write it: 137 for SIGKILL."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
