"""Walls by bubblewrap, the program that Flatpak builds them with: the same steps as its options.

Whoever packages it has made it work where our own calls may not: it can be setuid, or have a
profile of AppArmor that lets it have user namespaces.
"""

from __future__ import annotations

import marshal
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import NoReturn

from pytest_mlebench.sandbox.process import kernel
from pytest_mlebench.sandbox.process.namespaces import HOST_NAME
from pytest_mlebench.sandbox.process.order import Entrance, Order, Step

_HERE = Path(__file__).parent
_ROOT = "/agent-root"  # where a root of the agent's own is until the first process enters it
_PACKAGES = ("pytest_mlebench", "pytest_mlebench.sandbox", "pytest_mlebench.sandbox.process")

# The packages around the module are not imported: they would cost more than all that it does.
_START = f"""
import sys, types
for name in {_PACKAGES!r}:
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [{str(_HERE)!r}]
from pytest_mlebench.sandbox.process import inside
inside.main()
"""


def find() -> str | None:
    """Return the program, if it is installed."""
    return shutil.which("bwrap", path=f"{os.environ.get('PATH', '')}:/usr/bin:/usr/local/bin")


def build(order: Order, entrance: Entrance) -> NoReturn:
    """Become bubblewrap, and within it the first process inside."""
    program = find()
    if program is None:
        raise FileNotFoundError("bubblewrap is not installed")
    plan, channel, output = entrance.plan, entrance.channel, entrance.output
    plan["walls"] = [*([] if kernel.is_admin() else ["users"]), "mounts", "pids", "ipc", "uts"]
    plan["walls"] += ["net"] * order.offline
    plan["root"] = _ROOT if order.root else ""
    described = os.memfd_create("plan")
    os.write(described, marshal.dumps(plan))  # for the same Python
    os.lseek(described, 0, os.SEEK_SET)
    for descriptor in (described, channel, output):
        os.set_inheritable(descriptor, True)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)  # what it complains about
    python = os.path.realpath(sys.executable)
    start = [python, "-I", "-S", "-c", _START, *map(str, (described, channel, output))]
    os.execve(program, [program, *_options(order), "--", *start], {"LANG": "C.UTF-8"})


def _options(order: Order) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", HOST_NAME)
    yield from ("--as-pid-1", "--die-with-parent")
    if order.offline:
        yield "--unshare-net"
    yield from _rights(order)
    root = _ROOT if order.root else ""
    steps = _steps(order, root)
    devices = [step for step in steps if step.kind == "device"]
    empty = [step.target for step in steps if step.kind == "empty"]
    made = {"/"}
    for step in steps:
        for folder in reversed(PurePosixPath(step.target).parents):
            if str(folder) not in made:  # else it makes them for its own user alone
                made.add(str(folder))
                yield from ("--perms", "0755", "--dir", str(folder))
        yield from () if step in devices else _option(step)
    yield from ("--ro-bind", str(_HERE), str(_HERE))
    yield from ("--proc", f"{root}/proc", "--dev", f"{root}/dev")
    shared = ("--size", str(order.limits.shm_bytes), "--tmpfs", f"{root}/dev/shm")
    yield from ("--perms", "1777", *shared)
    for step in devices:
        yield from _option(step)
    for path in (*empty, f"{root}/dev", "/"):
        yield from ("--remount-ro", path)
    yield from ("--chdir", "/")


def _rights(order: Order) -> Iterator[str]:
    """Yield what the first process may do until it confines itself."""
    if kernel.is_admin():  # becomes another user inside
        yield from ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    else:
        yield "--unshare-user"
    if order.root:  # refused where the program is setuid
        yield from ("--cap-add", "CAP_SYS_CHROOT")


def _steps(order: Order, root: str) -> list[Step]:
    """Return all steps in their order, those of a root of the agent's own below its place."""
    if not order.root:
        return list(order.steps)
    within = [replace(step, target=f"{root}{step.target}") for step in order.steps]
    return [*order.outside, Step("show", root, order.root), *within]


def _option(step: Step) -> tuple[str, ...]:
    match step.kind:
        case "link":
            return ("--symlink", step.source, step.target)
        case "file":
            return ("--perms", "0644", "--file", str(_readable(step.source)), step.target)
        case "empty":
            return ("--size", str(step.size), "--tmpfs", step.target)
        case "lend":
            return ("--bind", step.source, step.target)
        case "device":
            return ("--dev-bind", step.source, step.target)
    return ("--ro-bind", step.source, step.target)


def _readable(text: str) -> int:
    """Return a descriptor from which to read *text*."""
    read, write = os.pipe()
    os.set_inheritable(read, True)
    os.write(write, text.encode())  # a few lines: less than a pipe holds
    os.close(write)
    return read
