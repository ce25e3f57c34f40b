"""A file that a living process holds: its lock ends with the process, however that ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


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
