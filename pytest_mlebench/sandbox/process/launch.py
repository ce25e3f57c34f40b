"""Start an agent: what happens between the fork and the agent's first line."""

from __future__ import annotations

import contextlib
import math
import os
import random
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from pytest_mlebench.agent import AgentContext
from pytest_mlebench.errors import SandboxError
from pytest_mlebench.sandbox.process import kernel, landlock

Function = Callable[[AgentContext], object]

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as shells say it


@dataclass(frozen=True)
class Order:
    """All that a supervisor is told, as plain data: it may be another interpreter."""

    command: tuple[str, ...]
    environment: dict[str, str]
    home: str
    data: str
    log: str
    hidden: tuple[str, ...]
    secrets: tuple[str, ...]
    confine: bool  # by Landlock
    offline: bool  # no network but what we serve on the ports
    ports: tuple[int, ...]
    time_seconds: float
    grace_seconds: float
    memory_bytes: int
    cpus: float
    disk_bytes: int
    pids: int
    open_files: int
    log_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Order:
        """Return the order that ``to_dict`` wrote, even if it came by JSON."""
        lists = {key: tuple(data[key]) for key in ("command", "hidden", "secrets", "ports")}
        return cls(**(data | lists))


def start(order: Order, function: Function | None) -> tuple[int, int]:
    """Start the agent; return its process id and the end from which to read its output."""
    rules = _rules(order)
    output, write_output = os.pipe()
    alarm, write_alarm = os.pipe()
    child = os.fork()
    if child == 0:
        _become_agent(order, function, rules, write_output, write_alarm)
    for descriptor in (write_output, write_alarm, *([] if rules is None else [rules])):
        os.close(descriptor)
    with os.fdopen(alarm, "rb") as file:
        trouble = file.read().decode()
    if trouble:
        raise SandboxError(f"cannot confine the agent: {trouble}")
    return child, output


def forget_descriptors(*kept: int) -> None:
    """Let go of what a copy of the session has open, but for *kept*.

    The numbers stay taken, by nothing: objects of the session still believe to own them.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for path in list(Path("/dev/fd").iterdir()):
        if int(path.name) not in {nothing, *kept}:
            with contextlib.suppress(OSError):  # the one that listed the folder is closed by now
                os.dup2(nothing, int(path.name), inheritable=False)


def _rules(order: Order) -> int | None:
    if not order.confine:
        return None
    readable = (order.data, sys.prefix, sys.base_prefix)
    hidden = [Path(path) for path in order.hidden]
    return landlock.confinement(Path(order.home), hidden=hidden, readable=map(Path, readable))


def _become_agent(
    order: Order, function: Function | None, rules: int | None, output: int, alarm: int
) -> NoReturn:
    """Turn this child into the agent; never return."""
    status = 1
    try:
        status = _run(order, function, rules, output, alarm)
    finally:
        os._exit(status)


def _run(
    order: Order, function: Function | None, rules: int | None, output: int, alarm: int
) -> int:
    try:
        _restrict(order, rules, output)
    except Exception as problem:
        os.write(alarm, str(problem).encode())
        return 1
    if function is None:
        return _execute(order)  # closes the alarm by succeeding
    forget_descriptors(0, 1, 2)
    return _call(function, order)


def _restrict(order: Order, rules: int | None, output: int) -> None:
    kernel.die_with_parent(signal.SIGKILL)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    os.chdir(order.environment["AGENT_DIR"])
    _limit(order)
    kernel.drop_capabilities()
    kernel.forbid_new_privileges()
    if rules is not None:
        landlock.enter(rules)


def _limit(order: Order) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = order.open_files if most == resource.RLIM_INFINITY else min(order.open_files, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    if kernel.LINUX:
        available = sorted(os.sched_getaffinity(0))
        wanted = math.ceil(order.cpus)
        if wanted < len(available):
            # any will do; always the first ones would crowd parallel attempts together
            os.sched_setaffinity(0, random.sample(available, wanted))
        with contextlib.suppress(OSError):  # if the host runs out of memory, the agent goes first
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _execute(order: Order) -> int:
    program = order.command[0]
    try:
        os.execvpe(program, list(order.command), order.environment)
    except OSError as problem:
        missing = isinstance(problem, FileNotFoundError)
        os.write(2, f"cannot start {program}: {(problem.strerror or '').lower()}\n".encode())
        return NOT_FOUND if missing else NOT_EXECUTABLE


def _call(function: Function, order: Order) -> int:
    """Call a Python agent in this child, which is a copy of the session."""
    os.environ.clear()
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
