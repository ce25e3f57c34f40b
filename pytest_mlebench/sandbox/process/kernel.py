"""What the process sandbox asks of the Linux kernel; elsewhere nothing of it is on offer."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import sys
from pathlib import Path

LINUX = sys.platform == "linux"

_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION = 0x20080522
_CAPABILITIES = 64

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MS_NOATIME, _MS_NODIRATIME = 32, 1024, 2048
_MS_BIND, _MS_REC, _MS_PRIVATE, _MS_RELATIME = 4096, 16384, 1 << 18, 1 << 21
_ST_RELATIME = 4096

_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    if LINUX:
        _call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(signal: int) -> None:
    """Receive *signal* when the process that started this one ends."""
    if LINUX:
        _call("prctl", _PR_SET_PDEATHSIG, signal, 0, 0, 0)


def forbid_new_privileges() -> None:
    """Let no setuid program raise this process or its children, for good."""
    if LINUX:
        _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def drop_capabilities() -> None:
    """Give up what root may do beyond its own files, for good."""
    if not LINUX:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(_CAPABILITIES):  # fails where there is nothing to drop
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    _call("capset", header, bytes(24))


def can_isolate(folder: str, *, network: bool) -> bool:
    """Try out in a child whether ``isolate`` and ``bind_read_only`` work; half done is no good."""
    if not LINUX:
        return False
    child = os.fork()
    if child == 0:
        status = 1
        try:
            isolate(network=network)
            bind_read_only(folder, folder)
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def isolate(*, network: bool) -> None:
    """Move this process into a mount namespace of its own, and a network that has only itself."""
    if not LINUX:
        raise OSError("this system has no namespaces")
    flags = _CLONE_NEWNS | (_CLONE_NEWNET if network else 0)
    uid, gid = os.geteuid(), os.getegid()
    try:
        _call("unshare", flags)
    except OSError:  # not the administrator: only in a user namespace
        _call("unshare", flags | _CLONE_NEWUSER)
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1", encoding="ascii")
    _mount(None, "/", _MS_REC | _MS_PRIVATE)
    if network:
        _raise_loopback()


def bind_read_only(source: str, target: str) -> None:
    """Show the folder *source* at *target*, read-only; after ``isolate``."""
    _mount(source, target, _MS_BIND | _MS_REC)
    kept = os.statvfs(target).f_flag  # flags that a user namespace may not take off
    flags = _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV
    flags |= kept & (_MS_NOEXEC | _MS_NOATIME | _MS_NODIRATIME)
    flags |= _MS_RELATIME if kept & _ST_RELATIME else 0
    _mount(None, target, flags)


def cover(path: str) -> None:
    """Put nothing in the place of a file, if there is one; after ``isolate``."""
    try:
        _mount(os.devnull, path, _MS_BIND)
    except OSError as problem:
        if problem.errno not in {errno.ENOENT, errno.ENOTDIR, errno.EACCES}:
            raise


def _raise_loopback() -> None:
    import fcntl  # late on purpose: not on every system

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as anything:
        fcntl.ioctl(anything, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def _mount(source: str | None, target: str, flags: int) -> None:
    where = None if source is None else os.fsencode(source)
    _call("mount", where, os.fsencode(target), None, ctypes.c_ulong(flags), None)


def _call(name: str, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    words = [ctypes.c_ulong(word) if isinstance(word, int) else word for word in arguments]
    result: int = getattr(libc, name)(*words)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result
