"""What this host is made of, for the disclosure."""

from __future__ import annotations

import os
import platform

from pytest_mlebench._units import show_size
from pytest_mlebench.limits import host_cpus, host_memory


def host_hardware() -> dict[str, str]:
    """Return what this host is made of."""
    return {
        "cpus": str(host_cpus()),
        "memory": show_size(host_memory()),
        "machine": platform.machine(),
        "system": f"{platform.system()} {os.uname().release}",
        "python": platform.python_version(),
    }
