"""The libraries of NVIDIA's driver: they belong to the host's kernel, and no image has them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

DRIVER = "/usr/local/nvidia/lib64"  # where NVIDIA's own images look for them

_LINE = re.compile(
    r"\s(?P<name>lib(?:cuda|nvidia-[\w-]+|nvcuvid)\.so\.\d+) \(.*\) => (?P<path>/.*)"
)


def driver_libraries(listing: str | None = None) -> list[Path]:
    """Return the libraries that CUDA programs load, by the table of the dynamic linker."""
    text = _listing() if listing is None else listing
    found: dict[str, Path] = {}
    for match in _LINE.finditer(text):
        if "x86-64" in match[0] or "AArch64" in match[0]:
            found.setdefault(match["name"], Path(match["path"]))
    return [path for path in found.values() if path.exists()]


def _listing() -> str:
    program = shutil.which("ldconfig", path="/sbin:/usr/sbin:/usr/bin")
    if program is None:
        return ""
    done = subprocess.run([program, "-p"], capture_output=True, text=True, check=False)
    return done.stdout
