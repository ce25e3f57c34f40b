"""Start an agent behind walls: from the supervisor to the agent's first line."""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import socket
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from pytest_mlebench.agent import AgentContext
from pytest_mlebench.errors import SandboxError
from pytest_mlebench.sandbox.process import bubblewrap, inside, kernel, landlock, namespaces
from pytest_mlebench.sandbox.process.cgroup import Cgroup
from pytest_mlebench.sandbox.process.memory_erasure import erase_environment, erase_texts
from pytest_mlebench.sandbox.process.order import Build, Builder, Entrance, Function, Order
from pytest_mlebench.upstream import MIN_SECRET_LENGTH

_MAX_DESCRIPTORS = 32  # of which the supervisor passes on MAX_PORTS
_PATIENCE = 120.0  # seconds for walls to be built, on a host that is busy
_RELEASE_WITH_COUNTS = (5, 14)  # of Linux: RLIMIT_NPROC counts in a user namespace, not on the host

# For want of mounts: devices an honest program uses. Disks and memory are not among them.
_DEVICES = (
    *("null", "zero", "full", "random", "urandom", "tty", "ptmx", "fuse"),
    *("nvidia*", "nvidia-caps/*", "dri/*", "dri/by-path/*", "kfd", "dxg", "infiniband/*"),
    *("accel*", "accel/*", "hl*", "neuron*", "vfio/*"),
)


def _build_nothing(order: Order, entrance: Entrance) -> NoReturn:
    if order.offline:
        raise OSError("nobody else can give the agent a network of its own")
    inside.run(entrance.plan, entrance.channel, entrance.output, entrance.call)


_BUILDERS: dict[Builder, Build] = {
    "bubblewrap": bubblewrap.build,
    "namespaces": namespaces.build,
    "none": _build_nothing,
}


@dataclass
class Started:
    """An agent at work, as its supervisor sees it."""

    channel: socket.socket  # to the first process inside
    output: int  # from which to read what the agent prints
    walls: tuple[str, ...] = ()
    descriptors: dict[str, int] = field(default_factory=dict)  # what the inside opened for us
    unread: bytes = b""

    def receive(self) -> tuple[str, str] | None:
        """Return the next word of the first process inside and what it says, None if it is gone."""
        while b"\n" not in self.unread:
            data, descriptors, _, _ = socket.recv_fds(self.channel, 1 << 16, _MAX_DESCRIPTORS)
            if not data:
                return None
            self.unread += data
            self.descriptors |= {str(number): number for number in descriptors}
        line, _, self.unread = self.unread.partition(b"\n")
        word, _, rest = line.decode(errors="replace").partition(" ")
        return word, rest


def start(order: Order, function: Function | None, cgroup: Cgroup | None) -> Started:
    """Build the walls and start the agent behind them."""
    plan = _plan(order, cgroup)
    ours, theirs = socket.socketpair()
    output, write_output = os.pipe()
    if order.user is not None:
        os.fchown(write_output, order.user, order.user)  # so that /dev/stdout can be opened
    if os.fork() == 0:
        ours.close()
        call = None if function is None else (lambda: _call(function, order))
        _enter(order, Entrance(plan, theirs.detach(), write_output, call), cgroup)
    theirs.close()
    os.close(write_output)
    started = Started(ours, output)
    _wait(started)
    if cgroup is not None:
        started.walls = (*started.walls, "cgroup")
    return started


def forget_descriptors(*kept: int) -> None:
    """Let go of what a copy of another process has open, but for *kept*.

    The numbers stay taken, by nothing: objects of that process still believe to own them.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for path in list(Path("/dev/fd").iterdir()):
        if int(path.name) not in {nothing, *kept}:
            with contextlib.suppress(OSError):  # the one that listed the folder is closed by now
                os.dup2(nothing, int(path.name), inheritable=False)


def _enter(order: Order, entrance: Entrance, cgroup: Cgroup | None) -> NoReturn:
    """Be the child: build the walls, and be the first process inside; never return."""
    try:
        os.umask(0o022)
        signal.set_wakeup_fd(-1)
        forget_descriptors(entrance.channel, entrance.output)
        if entrance.call is not None:  # a copy of the session, and its keys
            erase_texts(_keys(order))
        if cgroup is not None:
            cgroup.join()
        _BUILDERS[order.walls](order, entrance)
    except Exception as problem:
        line = f"{inside.FAILED} cannot build the walls: {problem}\n"
        os.write(entrance.channel, line.encode())
    finally:
        os._exit(1)


def _keys(order: Order) -> set[str]:
    """Return what is secret before the agent, too: not what its own environment gives it."""
    given = "\0".join(order.environment.values())
    long = (text for text in order.secrets if len(text) >= MIN_SECRET_LENGTH)
    return {text for text in long if text not in given}


def _wait(started: Started) -> None:
    """Wait until the agent runs, or raise SandboxError with what was said instead."""
    started.channel.settimeout(_PATIENCE)
    try:
        answer = started.receive()
    except TimeoutError:
        raise SandboxError(f"the walls were not up within {_PATIENCE:g} s") from None
    if answer is None:
        said = _last_line(started.output)
        raise SandboxError(f"cannot build the walls{': ' if said else ''}{said}")
    word, rest = answer
    if word != inside.READY:
        raise SandboxError(rest)
    started.channel.settimeout(None)
    walls, names = rest.split(" ")
    started.walls = tuple(walls.split(",")) if walls else ()
    numbers = started.descriptors.values()
    started.descriptors = dict(zip(names.split(","), numbers, strict=True)) if names else {}


def _last_line(output: int) -> str:
    os.set_blocking(output, False)
    with contextlib.suppress(BlockingIOError):
        lines = os.read(output, 1 << 16).decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "")
    return ""


def _plan(order: Order, cgroup: Cgroup | None) -> dict[str, Any]:
    """Return what the first process inside needs to know."""
    counts = order.walls != "none" and _release() >= _RELEASE_WITH_COUNTS
    return {
        "walls": [],  # whoever builds some says so
        "root": "",  # likewise
        "required": [name for name in order.required if name not in {"cgroup", "disk"}],
        "command": order.command,
        "environment": order.environment,
        "user": order.user,
        "ports": order.ports if order.offline else (),
        "open_files": order.limits.open_files,
        "processes": order.limits.pids if counts and cgroup is None else 0,
        "cpus": _choose_cpus(order.limits.cpus),
        **_reach(order),
    }


def _reach(order: Order) -> dict[str, list[str]]:
    """Return what Landlock lets the agent reach: what is there, or for want of mounts its part."""
    lent = [step for step in order.steps if step.kind == "lend"]
    if order.walls != "none":
        writable = [*(step.target for step in lent), "/dev/shm"]
        return {"readable": ["/"], "writable": writable, "devices": ["/dev"]}
    hidden = set(order.hidden)
    shown = [step.source for step in order.steps if step.kind == "show"]
    shown += [step.target for step in order.steps if step.kind == "file"]  # the host's own
    return {
        "readable": [part for path in (*shown, "/proc") for part in landlock.visible(path, hidden)],
        "writable": [*(step.source for step in lent), "/dev/pts", "/dev/shm"],
        "devices": [str(path) for name in _DEVICES for path in Path("/dev").glob(name)],
    }


def _choose_cpus(wanted: float) -> list[int]:
    """Return the CPUs for an agent, nothing if it may have them all."""
    if not kernel.LINUX:
        return []
    available = sorted(os.sched_getaffinity(0))
    number = math.ceil(wanted)
    # any will do; always the first ones would crowd parallel attempts together
    return random.sample(available, number) if number < len(available) else []


def _release() -> tuple[int, ...]:
    numbers = os.uname().release.split("-")[0].split(".")[:2]
    return tuple(int(number) for number in numbers if number.isdecimal())


def _call(function: Function, order: Order) -> int:
    """Call a Python agent in this child, which is a copy of the session."""
    forget_descriptors(0, 1, 2)
    erase_environment()
    os.environ.update(order.environment)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as Python programs have it
    sys.stdin = os.fdopen(0, encoding="utf-8")
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    status = 0
    try:
        function(AgentContext.from_environment(os.environ))
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(end.code + "\n")
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    return status & 0xFF
