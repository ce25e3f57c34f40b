"""Walls by our own calls: namespaces of users, mounts, processes, IPC, host name and network.

The agent's file system is put together in an empty one from the steps of an order, and becomes
the root; the host's is taken out of sight. Everything in it is read-only but what is lent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import NoReturn

from pytest_mlebench.sandbox.process import inside, kernel
from pytest_mlebench.sandbox.process.order import Entrance, Order, Step

HOST_NAME = "mlebench"
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

_OLD, _NEW = Path("/old"), Path("/new")
_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
_FLAGS = {  # options of /proc/self/mountinfo, see proc_pid_mountinfo(5)
    "ro": kernel.READ_ONLY,
    "nosuid": kernel.NO_SUID,
    "nodev": kernel.NO_DEVICES,
    "noexec": kernel.NO_EXEC,
    "noatime": kernel.NO_ATIME,
    "nodiratime": kernel.NO_DIR_ATIME,
    "relatime": kernel.RELATIVE_ATIME,
}
_HARMLESS = kernel.NO_SUID | kernel.NO_DEVICES
_CLOSED = _HARMLESS | kernel.READ_ONLY


def build(order: Order, entrance: Entrance) -> NoReturn:
    """Build the walls around a child of this process, which is the first one inside."""
    entrance.plan["walls"] = _enter(order)
    inside.run(entrance.plan, entrance.channel, entrance.output, entrance.call)


def _enter(order: Order) -> list[str]:
    """Enter namespaces and return which; who comes back is number 1, and its parent is gone."""
    walls = ["mounts", "pids", "ipc", "uts"]
    kinds = kernel.NEW_MOUNTS | kernel.NEW_PIDS | kernel.NEW_IPC | kernel.NEW_UTS
    if order.offline:
        walls.append("net")
        kinds |= kernel.NEW_NETWORK
    if not kernel.is_admin():
        kernel.own_users()
        walls.insert(0, "users")
    kernel.unshare(kinds)
    if os.fork():
        os._exit(0)
    kernel.mount(None, "/", flags=kernel.RECURSIVE | kernel.PRIVATE)
    kernel.set_host_name(HOST_NAME)
    if order.offline:
        kernel.raise_loopback()
    if order.root:
        inside.forbid_imports()
    _build(order)
    return walls


def _build(order: Order) -> None:
    """Put a new root together and enter it, leaving the old one behind."""
    base = Path(order.home).parent  # any folder will do: it is free again after the first turn
    _mount_empty(base, 1 << 20, "755")
    os.chdir(base)
    for folder in (_OLD, _NEW):
        Path(folder.name).mkdir()
    kernel.pivot_root(".", _OLD.name)
    os.chdir("/")
    if order.root:
        kernel.mount(f"{_OLD}{order.root}", str(_NEW), flags=kernel.BIND | kernel.RECURSIVE)
        _mount_empty(_folder("/dev"), 1 << 20, "755")
    else:
        kernel.mount(str(_NEW), str(_NEW), flags=kernel.BIND)
    for step in order.steps:
        _place(step)
    _make_devices(order.limits.shm_bytes)
    flags = _HARMLESS | kernel.NO_EXEC
    kernel.mount("proc", str(_folder("/proc")), kind="proc", flags=flags)
    _close(order.steps)
    os.chdir(_NEW)
    kernel.pivot_root(".", ".")  # stacks the roots, see pivot_root(2)
    kernel.unmount(".")
    os.chdir("/")


def _place(step: Step) -> None:
    if step.kind == "link":
        _beside(step.target).symlink_to(step.source)
    elif step.kind == "file":
        _beside(step.target).write_text(step.source, encoding="utf-8")
    elif step.kind == "empty":
        _mount_empty(_folder(step.target), step.size, "755")
    else:
        _bind(step.source, step.target, kernel.BIND | kernel.RECURSIVE)


def _make_devices(shm_bytes: int) -> None:
    for name in DEVICES:
        _bind(f"/dev/{name}", f"/dev/{name}", kernel.BIND)
    for name, target in _LINKS.items():
        _beside(f"/dev/{name}").symlink_to(target)
    flags = kernel.NO_SUID | kernel.NO_EXEC
    options = "newinstance,ptmxmode=0666,mode=620"
    terminals = str(_folder("/dev/pts"))
    kernel.mount("devpts", terminals, kind="devpts", flags=flags, options=options)
    _mount_empty(_folder("/dev/shm"), shm_bytes, "1777")


def _close(steps: Sequence[Step]) -> None:
    """Make everything read-only but what is lent, the mounts below other mounts too."""
    modes: dict[PurePath, str] = {
        PurePath(step.target): step.kind
        for step in steps
        if step.kind in {"show", "lend", "device"}
    }
    modes |= {PurePath("/dev/shm"): "lend", PurePath("/proc"): "lend"}
    modes |= {PurePath("/dev", name): "device" for name in ("pts", *DEVICES)}
    later: set[PurePath] = set()
    for target, flags in reversed(list(_mounts())):
        places = (target, *target.parents)
        covered = not later.isdisjoint(places)  # by what was mounted over it
        later.add(target)
        kind = next((modes[path] for path in places if path in modes), "show")
        if kind != "device" and not covered:
            wanted = flags | (_CLOSED if kind == "show" else _HARMLESS)
            if wanted != flags:
                remount = kernel.REMOUNT | kernel.BIND | wanted
                kernel.mount(None, f"{_NEW}{target}", flags=remount)


def _mounts() -> Iterator[tuple[PurePath, int]]:
    """Yield every mount in the new root, with its flags."""
    text = (_NEW / "proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    for line in text.splitlines():
        fields = line.split(" ")
        target = PurePath(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4]))
        if target.is_relative_to(_NEW):
            flags = sum(_FLAGS.get(option, 0) for option in fields[5].split(","))
            yield "/" / target.relative_to(_NEW), flags


def _bind(source: str, target: str, flags: int) -> None:
    """Show *source*, a folder or a file, at *target*."""
    old = f"{_OLD}{source}"
    if Path(old).is_dir():
        place = _folder(target)
    else:
        place = _beside(target)
        if not place.exists():
            place.touch()
    kernel.mount(old, str(place), flags=flags)


def _beside(path: str) -> Path:
    """Return a path in the new root whose folder is there."""
    place = Path(f"{_NEW}{path}")
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _folder(path: str) -> Path:
    """Return a folder in the new root, made if it is not there."""
    place = Path(f"{_NEW}{path}")
    place.mkdir(parents=True, exist_ok=True)
    return place


def _mount_empty(target: Path, size: int, mode: str) -> None:
    options = f"size={size},mode={mode}"
    kernel.mount("tmpfs", str(target), kind="tmpfs", flags=_HARMLESS, options=options)
