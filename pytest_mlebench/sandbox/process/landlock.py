"""Confine a process to what it may read and write, by Linux' Landlock, without privileges.

Landlock knows only what is allowed, and what is allowed for a folder is allowed for all below.
So a folder is hidden by allowing what lies beside it on every level of its path.
A confined process cannot trace, signal or read the memory and environment of others either.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_VERSION = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # how many file rights each version knows
_ALL = (1 << 16) - 1

LIST = _READ_DIR
READ = _EXECUTE | _READ_FILE | _READ_DIR
DEVICE = _READ_FILE | _WRITE_FILE | _IOCTL_DEV
WRITE = _ALL & ~_MAKE_CHAR & ~_MAKE_BLOCK
_FOR_FILES = _EXECUTE | _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV

_SCOPES = 0b11  # abstract sockets and signals stay among the confined

# Devices an honest program uses. Disks and memory are not among them: root could read the answers.
_DEVICES = (
    *("null", "zero", "full", "random", "urandom", "tty", "ptmx", "fuse"),
    *("nvidia*", "nvidia-caps/*", "dri/*", "dri/by-path/*", "kfd", "dxg", "infiniband/*"),
    *("accel*", "accel/*", "hl*", "neuron*", "vfio/*"),
)
_DEVICE_FOLDERS = ("pts", "shm")


@lru_cache(maxsize=1)
def version() -> int:
    """Return the version of Landlock that the kernel offers, 0 if none."""
    if sys.platform != "linux":
        return 0
    try:
        return _system_call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    except OSError:
        return 0


def confinement(home: Path, *, hidden: Iterable[Path], readable: Iterable[Path] = ()) -> int:
    """Return a rule set: write in *home* only, read all but *hidden*, yet *readable* and *home*."""
    home = home.resolve()
    secret = {path.resolve() for path in hidden}
    rules = _create()
    try:
        for path in visible(secret | {Path("/dev"), home.parent}):
            _allow(rules, path, READ)
        for path in _listable(home, secret):
            _allow(rules, path, LIST)
        for path in readable:
            if not any(path in other.parents for other in secret):
                _allow(rules, path, READ)
        _allow_devices(rules)
        _allow(rules, home, WRITE)
    except BaseException:
        os.close(rules)
        raise
    return rules


def enter(rules: int) -> None:
    """Confine this process and its children to *rules*, for good; needs no_new_privs."""
    _system_call(_RESTRICT, ctypes.c_int(rules), ctypes.c_uint32(0))


def visible(hidden: set[Path], folder: Path = Path("/")) -> Iterator[Path]:
    """Yield the topmost paths that together hold everything in *folder* but *hidden*."""
    try:
        with os.scandir(folder) as found:
            entries = [Path(entry.path) for entry in found if not entry.is_symlink()]
    except OSError:
        return
    for path in sorted(entries):
        if path in hidden:  # whatever else lies in it
            continue
        inside = {other for other in hidden if path in other.parents}
        if inside:
            yield from visible(inside, path)
        else:
            yield path


def _listable(home: Path, secret: set[Path]) -> Iterator[Path]:
    """Yield the folders above *home* whose names tell nothing about what is secret.

    Python finds no module in a folder that it cannot list, and a project's runs often lie in it.
    """
    about_answers = {path for path in secret if path not in home.parents}
    for folder in home.parents:
        if not any(folder == path or folder in path.parents for path in about_answers):
            yield folder


def _allow_devices(rules: int) -> None:
    devices = Path("/dev")
    _allow(rules, devices, LIST)
    for pattern in _DEVICES:
        for path in devices.glob(pattern):
            if path.is_char_device():
                _allow(rules, path, DEVICE)
    for name in _DEVICE_FOLDERS:
        _allow(rules, devices / name, WRITE)


def _create() -> int:
    scopes = _SCOPES if version() >= 6 else 0
    try:
        return _create_with(scopes)
    except OSError:  # kernels with patches of their own may count versions differently
        if not scopes:
            raise
        return _create_with(0)


def _create_with(scopes: int) -> int:
    attributes = struct.pack("QQQ", _handled(), 0, scopes)
    size = 24 if scopes else 8
    return _system_call(_CREATE, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0))


def _handled() -> int:
    return (1 << _RIGHTS[min(version(), max(_RIGHTS))]) - 1


def _allow(rules: int, path: Path, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # gone, or closed to us as to the agent
        return
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            rights &= _FOR_FILES
        rule = struct.pack("=Qi", rights & _handled(), handle)
        arguments = (ctypes.c_int(rules), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
        _system_call(_ADD, *arguments)
    finally:
        os.close(handle)


def _system_call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"landlock: {os.strerror(error)}")
    return result
