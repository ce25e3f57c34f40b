"""Run a session in a mount namespace of its own: with a tiny disk, a read-only folder, no cgroups.

done = run_with_mounts(tiny(folder, "4g,nr_inodes=50000"), "--mle-agent=dummy", cwd=folder.parent)
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pytest_mlebench.sandbox.process import kernel

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")


@contextlib.contextmanager
def mounted_tmpfs(folder: Path, options: str) -> Iterator[Path]:
    """Make a folder a disk of its own in memory, for a while; root only."""
    folder.mkdir(exist_ok=True)
    kernel.mount("tmpfs", str(folder), kind="tmpfs", options=options)
    try:
        yield folder
    finally:
        kernel.unmount(str(folder))


def run_with_mounts(
    mounts: Sequence[Sequence[str | Path]],
    *arguments: str,
    cwd: Path,
    program: Sequence[str] = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider"),
) -> subprocess.CompletedProcess[str]:
    """Run pytest, or another program, where some mounts are made that nobody else sees."""
    lines = [shlex.join(("mount", *map(str, words))) for words in mounts]
    start = shlex.join((*program, *arguments))
    script = "\n".join(("set -e", *lines, f"exec {start}"))
    return subprocess.run(
        ["unshare", "--mount", "--propagation=private", "sh", "-c", script],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
        check=False,
    )


def read_only(folder: Path) -> list[Sequence[str | Path]]:
    """Return the mounts that make a folder one that not even root can write to."""
    return [("--bind", folder, folder), ("-o", "remount,bind,ro", folder)]


def tiny(folder: Path, size: str) -> list[Sequence[str | Path]]:
    """Return the mounts that make a folder a disk of its own."""
    return [("-t", "tmpfs", "-o", f"size={size},mode=700", "none", folder)]
