"""Exchange two names in one step, which Linux can do and Python does not offer."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

# renameat2(2): relative names are below the current folder (linux/fcntl.h), both names change
# places (linux/fs.h).
AT_FDCWD = -100
RENAME_EXCHANGE = 1 << 1


def exchange(one: Path, other: Path) -> bool:
    """Exchange two existing paths; return whether that was possible, else nothing has happened."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # a C library without it
        return False
    names = (os.fsencode(one), os.fsencode(other))
    # Network file systems refuse it with one error or another: then it is done in two steps.
    return bool(renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0)
