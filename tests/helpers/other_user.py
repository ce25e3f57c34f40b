"""Run a command as an ordinary user who can read what we are made of, for tests that root runs.

    python other_user.py COMMAND …

A Python in root's own home is out of such a user's reach: in a mount namespace of our own, folders
above it are replaced by ones in which there is nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pytest_mlebench.sandbox.process import kernel

USER = 52_001
REPOSITORY = Path(__file__).parents[2]


def command_as_user(*command: str) -> list[str]:
    """Return a command that runs another one as an ordinary user."""
    return [sys.executable, __file__, *command]


def pytest_as_user(folder: Path, *arguments: str) -> None:
    """Run tests of this repository as an ordinary user, below *folder*; they must pass."""
    os.chown(folder, USER, USER)
    command = command_as_user(
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
        *(f"--basetemp={folder}/tests", *arguments),
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    if done.returncode or " passed" not in done.stdout:
        raise AssertionError(done.stdout[-4000:] + done.stderr[-4000:])


def _open_up(folder: Path) -> None:
    """Let everybody reach *folder*, and nothing else of what was closed above it."""
    closed = next((path for path in reversed(folder.parents) if not path.stat().st_mode & 1), None)
    if closed is None:
        return
    with tempfile.TemporaryDirectory() as aside:
        kernel.mount(str(folder), aside, flags=kernel.BIND | kernel.RECURSIVE)
        kernel.mount("tmpfs", str(closed), kind="tmpfs", options="mode=755")
        folder.mkdir(parents=True)
        kernel.mount(aside, str(folder), flags=kernel.BIND | kernel.RECURSIVE)
        kernel.unmount(aside)


def main() -> None:
    """Become the user, with a home of its own, and run the command."""
    kernel.unshare(kernel.NEW_MOUNTS)
    kernel.mount(None, "/", flags=kernel.RECURSIVE | kernel.PRIVATE)
    for prefix in {sys.prefix, sys.base_prefix}:
        _open_up(Path(prefix).resolve())
    kernel.become(USER)
    os.environ |= {"HOME": "/nonexistent", "USER": "tester", "LOGNAME": "tester"}
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
