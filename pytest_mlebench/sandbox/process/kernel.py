"""What the process sandbox asks of the Linux kernel; elsewhere nothing of it is on offer.

Numbers are those of the kernel's uapi headers, named at each group; ``man 2`` has the calls.
Only light modules are imported: ``inside`` starts an interpreter for this.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

LINUX = sys.platform == "linux"

# linux/prctl.h
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4

# linux/capability.h
_CAPABILITY_VERSION = 0x20080522
_CAPABILITIES = 64
_CAP_SYS_ADMIN = 21

# linux/sched.h
NEW_MOUNTS = 0x00020000
NEW_UTS = 0x04000000
NEW_IPC = 0x08000000
NEW_USER = 0x10000000
NEW_PIDS = 0x20000000
NEW_NETWORK = 0x40000000
NAMESPACES = 0x7E020000  # all of them but time, which has no bit in clone(2)

# linux/mount.h
READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
REMOUNT, NO_ATIME, NO_DIR_ATIME = 32, 1024, 2048
BIND, RECURSIVE, PRIVATE, RELATIVE_ATIME = 4096, 16384, 1 << 18, 1 << 21
_UNMOUNT_DETACHED = 2

# linux/sockios.h, linux/if.h
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    if LINUX:
        call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(signal: int) -> None:
    """Receive *signal* when the process that started this one ends."""
    if LINUX:
        call("prctl", _PR_SET_PDEATHSIG, signal, 0, 0, 0)


def forbid_new_privileges() -> None:
    """Let no setuid program raise this process or its children, for good."""
    if LINUX:
        call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def set_dumpable(yes: bool) -> None:
    """Let processes of the same user look into this one, or not."""
    if LINUX:
        call("prctl", _PR_SET_DUMPABLE, int(yes), 0, 0, 0)


def drop_capabilities() -> None:
    """Give up what root may do beyond its own files, for good."""
    if not LINUX:
        return
    for capability in range(_CAPABILITIES):  # fails where there is nothing to drop
        _libc().prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _libc().prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    call("capset", struct.pack("Ii", _CAPABILITY_VERSION, 0), bytes(24))


def is_admin() -> bool:
    """Tell whether this process may change mounts without a user namespace."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        effective = next(line for line in file if line.startswith("CapEff:"))
    return bool(int(effective.split()[1], 16) & 1 << _CAP_SYS_ADMIN)


def become(user: int) -> None:
    """Turn root into *user*, who is in a group of the same number and in no other."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def own_users() -> None:
    """Enter a user namespace that knows this process' own user and nobody else."""
    user, group = os.getuid(), os.getgid()
    call("unshare", NEW_USER)
    set_dumpable(True)  # else the files below belong to root
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def unshare(namespaces: int) -> None:
    """Leave the namespaces that are shared with the parent; of pids only children do."""
    call("unshare", namespaces)


def mount(
    source: str | None, target: str, *, kind: str | None = None, flags: int = 0, options: str = ""
) -> None:
    """Mount, bind or remount something."""
    name = None if source is None else os.fsencode(source)
    filesystem = None if kind is None else kind.encode()
    try:
        call("mount", name, os.fsencode(target), filesystem, flags, options.encode() or None)
    except OSError as problem:
        what = "remount" if source is None else source
        raise OSError(problem.errno, f"{problem.strerror} ({what} at {target})") from None


def unmount(target: str) -> None:
    """Take a mount and all below it out of this namespace."""
    call("umount2", os.fsencode(target), _UNMOUNT_DETACHED)


def pivot_root(new: str, old: str) -> None:
    """Make the mount *new* the root, and show the root of before at *old* below it."""
    call("pivot_root", os.fsencode(new), os.fsencode(old))


def set_host_name(name: str) -> None:
    """Give the host another name; in a namespace of its own."""
    call("sethostname", name.encode(), len(name))


def raise_loopback() -> None:
    """Let a fresh network namespace talk to itself."""
    import fcntl  # late on purpose: not on every system
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as anything:
        fcntl.ioctl(anything, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def call(name: str, *arguments: object) -> int:
    """Call a function of the C library and raise OSError where it fails."""
    words = [ctypes.c_ulong(word) if isinstance(word, int) else word for word in arguments]
    result: int = getattr(_libc(), name)(*words)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


_libraries: list[ctypes.CDLL] = []


def _libc() -> ctypes.CDLL:
    if not _libraries:
        _libraries.append(ctypes.CDLL(None, use_errno=True))
    return _libraries[0]


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
