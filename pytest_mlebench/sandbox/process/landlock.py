"""Confine a process to what it may read and write, by Linux' Landlock, without privileges.

Landlock knows only what is allowed, and what is allowed for a folder is allowed for all below.
A confined process cannot trace, signal or read the memory and environment of others either; its
older versions lack some of that: ``SIGNALS`` and ``TRUNCATION`` say from which version on it is
there. Numbers are those of linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys

TYPE_CHECKING = False  # typing is not light; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TRUNCATION = 3  # the version that first stops truncate(2)
SIGNALS = 6  # the version that first stops signals and connections to abstract unix sockets

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_VERSION = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # how many file rights each version knows
_ALL = (1 << 16) - 1

_READ = _EXECUTE | _READ_FILE | _READ_DIR
_DEVICE = _READ_FILE | _WRITE_FILE | _READ_DIR | _IOCTL_DEV
_WRITE = _ALL & ~_MAKE_CHAR & ~_MAKE_BLOCK
_FOR_FILES = _EXECUTE | _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV

_SCOPES = 0b11  # abstract sockets and signals stay among the confined


def version() -> int:
    """Return the version of Landlock that the kernel offers, 0 if none."""
    if sys.platform != "linux":
        return 0
    try:
        number = _system_call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    except OSError:
        return 0
    try:
        os.close(_create(number))
    except OSError:  # kernels with patches of their own may count versions differently
        return min(number, SIGNALS - 1)
    return number


def rules(*, readable: Iterable[str], writable: Iterable[str], devices: Iterable[str] = ()) -> int:
    """Return a rule set: whatever is not named, or below what is, is out of reach."""
    number = version()
    made, handled = _create(number), _handled(number)
    try:
        for paths, rights in ((readable, _READ), (devices, _DEVICE), (writable, _WRITE)):
            for path in paths:
                _allow(made, path, rights, handled)
    except BaseException:
        os.close(made)
        raise
    return made


def enter(rules: int) -> None:
    """Confine this process and its children to *rules*, for good; needs no_new_privs."""
    _system_call(_RESTRICT, ctypes.c_int(rules), ctypes.c_uint32(0))


def visible(folder: str, hidden: set[str]) -> Iterator[str]:
    """Yield the topmost paths that together hold everything in *folder* but *hidden*."""
    if folder in hidden:  # whatever else is in it
        return
    inside = {path for path in hidden if path.startswith(folder.rstrip("/") + "/")}
    if not inside:
        yield folder
        return
    try:
        with os.scandir(folder) as found:
            paths = sorted(entry.path for entry in found if not entry.is_symlink())
    except OSError:
        return
    for path in paths:
        yield from visible(path, inside)


def _create(version: int) -> int:
    scopes = _SCOPES if version >= SIGNALS else 0
    attributes = struct.pack("QQQ", _handled(version), 0, scopes)
    size = 24 if scopes else 8
    return _system_call(_CREATE, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0))


def _handled(version: int) -> int:
    return (1 << _RIGHTS[min(version, max(_RIGHTS))]) - 1


def _allow(rules: int, path: str, rights: int, handled: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # gone, or closed to us as to the agent
        return
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            rights &= _FOR_FILES
        rule = struct.pack("=Qi", rights & handled, handle)
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
