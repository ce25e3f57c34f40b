"""A filter of system calls: what an agent never needs and kernels were broken with.

It refuses by name, not by default: Python, compilers, PyTorch, Java or a database use more of the
kernel than anybody has a list of. Calls that are younger than the list do not exist for the agent
(ENOSYS, upon which C libraries fall back on older ones), so that it needs no update to stay tight.

Refused are

- namespaces and mounts: with them an agent builds places where it is root, and most holes of the
  last years needed that first;
- keyrings, which belong to a user and not to a namespace, and outlive the agent;
- bpf, perf_event_open, userfaultfd, io_uring: large parts of the kernel that honest agents do
  without; io_uring also goes past filters such as this one;
- sockets of other families than unix, IP and netlink: virtual machines talk to their host by
  AF_VSOCK, whatever network namespace they are in;
- memfd_secret, whose pages no count of memory sees;
- typing into a terminal (TIOCSTI, TIOCLINUX);
- what only an administrator does: modules, kexec, swap, clocks, quotas, the kernel's log.

ptrace and process_vm_readv stay: debuggers use them, and they reach the agent's own processes only.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

from pytest_mlebench.sandbox.process import kernel

# linux/seccomp.h
_SET_MODE_FILTER = 1
_SPEC_ALLOW = 1 << 2  # a filter must not slow down what is in the agent's own address space
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENT = 0, 4, 16  # struct seccomp_data; little-endian low words

# linux/bpf_common.h: load a word, compare with a constant, return
_LOAD, _EQUAL, _GREATER, _ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06

_NEWEST = 469  # file_setattr, of Linux 6.17; from 424 on the numbers are the same everywhere

# asm/unistd.h of x86_64 and of the generic table that aarch64 has; AUDIT_ARCH_* of linux/audit.h
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_CALLS = {  # name: (x86_64, aarch64)
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
_MISSING = {  # programs fall back on something else where these do not exist
    "clone3": (435, 435),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "memfd_secret": (447, 447),
}
_CHANGES = {  # what changes a file without writing to it, which Landlock lets pass
    "chmod": (90, None),
    "chown": (92, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "file_setattr": (469, 469),
    "fremovexattr": (199, 16),
    "fsetxattr": (190, 7),
    "futimesat": (261, None),
    "lchown": (94, None),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
    "utime": (132, None),
    "utimensat": (280, 88),
    "utimes": (235, None),
}
_CLONE, _IOCTL = (56, 220), (16, 29)
_SOCKET, _SOCKETPAIR = (41, 198), (53, 199)

_FAMILIES = (1, 2, 10, 16)  # linux/socket.h: unix, IPv4, IPv6, netlink
_TERMINAL = (0x5412, 0x541C)  # asm-generic/ioctls.h: TIOCSTI, TIOCLINUX


def available() -> bool:
    """Tell whether there is a filter for this machine and the kernel takes filters."""
    return (
        sys.platform == "linux"
        and sys.byteorder == "little"
        and sys.maxsize > 1 << 32
        and os.uname().machine in _ARCHITECTURES
        and os.path.exists("/proc/sys/kernel/seccomp")
    )


def enter(*, only_reading: bool = False) -> None:
    """Filter the calls of this process and of its children, for good; needs no_new_privs.

    Who *only reads* makes no sockets and changes no files either.
    """
    code = program(os.uname().machine, only_reading=only_reading)
    text = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog of linux/filter.h: how many instructions, and where
    header = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(text))
    number = _SECCOMP[os.uname().machine]
    try:
        kernel.call("syscall", number, _SET_MODE_FILTER, _SPEC_ALLOW, header)
    except OSError:  # before Linux 4.17
        kernel.call("syscall", number, _SET_MODE_FILTER, 0, header)


def program(machine: str, *, only_reading: bool = False) -> bytes:
    """Return the filter for a machine in the kernel's classic BPF."""
    architecture = _ARCHITECTURES[machine]
    column = list(_ARCHITECTURES).index(machine)
    lines = [
        _line(_LOAD, _ARCHITECTURE),
        _line(_EQUAL, architecture, 1, 0),
        _refuse(errno.ENOSYS),
        _line(_LOAD, _NUMBER),
        _line(_GREATER, _NEWEST, 0, 1),  # the numbers of x32 are among them
        _refuse(errno.ENOSYS),
    ]
    refused = _CALLS | _CHANGES if only_reading else _CALLS
    for calls, error in ((_MISSING, errno.ENOSYS), (refused, errno.EPERM)):
        for numbers in calls.values():
            if (number := numbers[column]) is not None:
                lines += [_line(_EQUAL, number, 0, 1), _refuse(error)]
    lines += _block(_CLONE[column], 0, [(_ANY_BIT, kernel.NAMESPACES)], errno.EPERM)
    lines += _block(_IOCTL[column], 1, [(_EQUAL, code) for code in _TERMINAL], errno.EPERM)
    for numbers in (_SOCKET, _SOCKETPAIR):
        allowed = () if only_reading else _FAMILIES
        lines += _only(numbers[column], allowed, errno.EAFNOSUPPORT)
    return b"".join([*lines, _line(_RETURN, _ALLOW)])


def _block(number: int, argument: int, tests: list[tuple[int, int]], error: int) -> list[bytes]:
    """Return lines that refuse a call one of whose arguments passes a test."""
    body = [_line(_LOAD, _ARGUMENT + 8 * argument)]
    for test, value in tests:
        body += [_line(test, value, 0, 1), _refuse(error)]
    body.append(_line(_RETURN, _ALLOW))
    return [_line(_EQUAL, number, 0, len(body)), *body]


def _only(number: int, allowed: tuple[int, ...], error: int) -> list[bytes]:
    """Return lines that refuse a call whose first argument is none of *allowed*."""
    body = [_line(_LOAD, _ARGUMENT)]
    for value in allowed:
        body += [_line(_EQUAL, value, 0, 1), _line(_RETURN, _ALLOW)]
    body.append(_refuse(error))
    return [_line(_EQUAL, number, 0, len(body)), *body]


def _refuse(error: int) -> bytes:
    return _line(_RETURN, _ERRNO | error)


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Return one struct sock_filter of linux/filter.h."""
    return struct.pack("HBBI", code, if_true, if_false, value)
