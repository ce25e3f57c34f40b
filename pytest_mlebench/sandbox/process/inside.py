"""Inside the walls: the first process there, which starts the agent, and what the agent passes.

    run(plan, channel, output)          # in a child; never returns

The first process is number 1 of the agent's own table of processes, if it has one: when it ends,
the kernel ends everything else there. It confines itself, starts the agent in a second and tighter
confinement, so that the agent can neither trace nor signal it, and collects orphans. *channel* is
a stream socket to the supervisor: out goes a line when the agent runs, with descriptors, and one
when it has ended; in comes one byte that asks for everybody's end. Its end, in either direction, is
the end.

It may be a copy of the supervisor or, inside bubblewrap, an interpreter of its own, whose start
every attempt pays for: hence only light modules are imported, and *plan* is plain data.
"""

from __future__ import annotations

import marshal
import os
import resource
import select
import struct
import sys

from pytest_mlebench.sandbox.process import kernel, landlock, seccomp

TYPE_CHECKING = False  # typing is not light; type checkers know the name
if TYPE_CHECKING:
    import signal
    import socket
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn
else:  # what these wrap costs a third of their time
    import _signal as signal
    import _socket as socket

TERMINATE = b"T"
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as shells say it

LISTENER = "listener-"  # and the port: the name of a descriptor
READY, FAILED, ENDED = "ready", "failed", "ended"  # the first words of lines to the supervisor

_COUNTED = ("/dev/shm", "/proc/sysvipc/shm", "/proc/sysvipc/msg")  # memory that no process has


def main() -> None:
    """Run the plan that is behind a descriptor, in a fresh interpreter."""
    plan, channel, output = map(int, sys.argv[-3:])
    with os.fdopen(plan, "rb") as file:
        loaded = marshal.load(file)
    run(loaded, channel, output)


def forbid_imports() -> None:
    """Load what is needed later, and nothing after it: modules of an image are not ours to run."""
    import encodings.ascii  # noqa: F401  # late on purpose: rarely needed
    import warnings  # noqa: F401  # for os.execvpe

    sys.path.clear()
    sys.path_importer_cache.clear()
    builtin = ("BuiltinImporter", "FrozenImporter")
    sys.meta_path[:] = [each for each in sys.meta_path if getattr(each, "__name__", "") in builtin]


def run(
    plan: Mapping[str, Any],
    channel: int,
    output: int,
    call: Callable[[], int] | None = None,
) -> NoReturn:
    """Confine this process, start the agent, and wait until it has ended; never return.

    The agent is the plan's command, or *call* in a copy of this process.
    """
    try:
        for descriptor in (channel, output):
            os.set_inheritable(descriptor, False)
        try:
            _Inside(plan, channel, output, call).live()
        except Exception as problem:
            os.write(channel, f"{FAILED} cannot confine the agent: {problem}\n".encode())
    finally:
        os._exit(1)


class _Inside:
    """The first process."""

    def __init__(
        self,
        plan: Mapping[str, Any],
        channel: int,
        output: int,
        call: Callable[[], int] | None,
    ) -> None:
        self._plan = plan
        self._channel = channel
        self._output = output
        self._call = call
        self._alone = os.getpid() == 1  # every process that we can see is the agent's

    def live(self) -> None:
        if self._plan["root"]:
            _enter_root(self._plan["root"])
        wakeups = self._handle_signals()
        shared = self._open_shared()
        walls, rules = self._confine()
        agent = self._start_agent(rules)
        os.close(self._output)
        self._tell_ready(walls, shared)
        self._watch(agent, wakeups)

    def _tell_ready(self, walls: list[str], shared: Mapping[str, int]) -> None:
        line = f"{READY} {','.join(walls)} {','.join(shared)}\n"
        numbers = struct.pack(f"{len(shared)}i", *shared.values())
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)] if shared else []
        channel = socket.socket(fileno=self._channel)
        channel.sendmsg([line.encode()], rights)
        channel.detach()
        for descriptor in shared.values():
            os.close(descriptor)

    def _handle_signals(self) -> int:
        """Let nothing but the end of a child wake the loop; return the descriptor that tells."""
        wakeups, wake = os.pipe()
        for descriptor in (wakeups, wake):
            os.set_blocking(descriptor, False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # the supervisor decides
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        return wakeups

    def _open_shared(self) -> dict[str, int]:
        """Return what the supervisor needs from in here: listening sockets, counts of memory."""
        found = {}
        for port in self._plan["ports"]:
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            listener.listen(64)
            found[f"{LISTENER}{port}"] = listener.detach()
        if "ipc" in self._plan["walls"]:
            for path in _COUNTED:
                try:
                    found[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                except OSError:  # a kernel without it: nothing to count
                    continue
        return found

    def _confine(self) -> tuple[list[str], int | None]:
        """Give up everything that the agent shall not have; return the walls and the rules."""
        plan = self._plan
        walls = list(plan["walls"])
        if kernel.LINUX:
            try:  # if the host runs out of memory, the agent goes first
                _write("/proc/self/oom_score_adj", "1000")
            except OSError:
                pass
        rules = None
        if version := landlock.version():
            rules = landlock.rules(
                readable=plan["readable"], writable=plan["writable"], devices=plan["devices"]
            )
        if plan["user"] is not None:
            kernel.become(plan["user"])
            walls.insert(0, "users")
            try:
                kernel.own_users()
            except OSError:  # another user is what matters
                pass
        kernel.set_dumpable(False)
        kernel.drop_capabilities()
        kernel.forbid_new_privileges()
        if seccomp.available():
            try:
                seccomp.enter()
                walls.append("seccomp")
            except OSError:  # whoever asks for walls is told that it is missing
                pass
        if rules is not None:
            landlock.enter(rules)
            walls.append(f"landlock-{version}")
        missing = set(plan["required"]) - {wall.partition("-")[0] for wall in walls}
        if missing:
            raise OSError(f"without {', '.join(sorted(missing))} it must not start")
        return walls, rules

    def _start_agent(self, rules: int | None) -> int:
        alarm, write_alarm = os.pipe()
        child = os.fork()
        if child == 0:
            _become_agent(self._plan, rules, self._output, write_alarm, self._call)
        os.close(write_alarm)
        if rules is not None:
            os.close(rules)
        with os.fdopen(alarm, "rb") as file:
            trouble = file.read().decode()
        if trouble:
            raise OSError(trouble)
        return child

    def _watch(self, agent: int, wakeups: int) -> None:
        """Wait for the agent's end; where all were asked to end, for everybody's."""
        poll = select.poll()
        for descriptor in (wakeups, self._channel):
            poll.register(descriptor, select.POLLIN)
        asked = False
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == wakeups:
                    os.read(wakeups, 4096)
                elif not (word := os.read(self._channel, 1)):
                    return  # the supervisor is no more
                elif word == TERMINATE and self._alone:
                    asked = True
                    _signal_all()
            alive, status = _reap(agent)
            if status is not None:
                os.write(self._channel, f"{ENDED} {status}\n".encode())
            if not alive or (status is not None and not asked):
                os._exit(0)


def _enter_root(root: str) -> None:
    """Leave everything outside a folder behind; without capabilities there is no way back."""
    forbid_imports()
    os.chroot(root)
    os.chdir("/")


def _signal_all() -> None:
    try:
        os.kill(-1, signal.SIGTERM)  # everybody but ourselves: their table of processes is ours
    except ProcessLookupError:
        pass


def _reap(agent: int) -> tuple[bool, int | None]:
    """Collect the children that have ended; tell whether some live on, and how the agent ended."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False, found
        if pid == 0:
            return True, found
        if pid == agent:
            found = status


def _become_agent(
    plan: Mapping[str, Any],
    rules: int | None,
    output: int,
    alarm: int,
    call: Callable[[], int] | None,
) -> NoReturn:
    """Turn this child into the agent; never return."""
    status = 1
    try:
        try:
            _restrict(plan, rules, output)
        except Exception as problem:
            os.write(alarm, str(problem).encode())
        else:
            if call is not None:
                kernel.set_dumpable(True)
                status = call()
            else:  # closes the alarm by succeeding
                status = _execute(plan) if plan["command"] else 0
    finally:
        os._exit(status)


def _restrict(plan: Mapping[str, Any], rules: int | None, output: int) -> None:
    kernel.die_with_parent(signal.SIGKILL)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    os.chdir(plan["environment"]["AGENT_DIR"])
    _limit(plan)
    if rules is not None:
        landlock.enter(rules)


def _limit(plan: Mapping[str, Any]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _set_limit(resource.RLIMIT_NOFILE, plan["open_files"])
    if plan["processes"]:
        _set_limit(resource.RLIMIT_NPROC, plan["processes"])
    if plan["cpus"]:
        os.sched_setaffinity(0, plan["cpus"])


def _set_limit(kind: int, value: int) -> None:
    _, most = resource.getrlimit(kind)
    chosen = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(kind, (chosen, chosen))


def _execute(plan: Mapping[str, Any]) -> int:
    program = plan["command"][0]
    try:
        os.execvpe(program, list(plan["command"]), plan["environment"])
    except OSError as problem:
        missing = isinstance(problem, FileNotFoundError)
        os.write(2, f"cannot start {program}: {(problem.strerror or '').lower()}\n".encode())
        return NOT_FOUND if missing else NOT_EXECUTABLE


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
