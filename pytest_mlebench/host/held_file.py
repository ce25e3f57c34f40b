"""A file that a living process holds: its lock ends with the process, however that ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def hold(path: Path, *, wait: bool) -> int | None:
    """Hold a file, made if need be, until the returned descriptor is closed.

    None: another process holds it, and is not waited for. A file that its holder has removed
    meanwhile is nobody's, and made anew.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)
            return None
        if os.fstat(descriptor).st_nlink > 0:
            return descriptor
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Tell whether a process holds a file exclusively (flock); looking does not disturb it."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # two who look see no holder
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
