"""Large files, copied from a host by an ssh of their own: faster than piece by piece.

A copy that is interrupted goes on where it was. Nobody trusts it for that: every file is compared
with its sha256 before it is put into place.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Literal

from pytest_mlebench.machines.hosts_file import Machine
from pytest_mlebench.machines.ssh import ssh_words

TRIES = 5  # to copy what is left of a file
PAUSE_SECONDS = 1.0  # after the first of them, twice as long after each

_OF_SSH = 255  # the exit status of ssh itself, not of what it has run (man ssh)

State = Literal["copying", "copied", "impossible"]


class LargeFiles:
    """The copies that are under way; each in a thread of its own, for it may take an hour."""

    def __init__(self, keepalive: float) -> None:
        self._keepalive = keepalive
        self._lock = threading.Lock()
        self._states: dict[Path, State] = {}

    def begin(self, machine: Machine, source: str, target: Path) -> State:
        """Begin to copy a file of a machine, or go on with it, if there is a way to do that."""
        if machine.srun is not None or shutil.which("ssh") is None:
            return "impossible"
        with self._lock:
            is_under_way = self._states.get(target) == "copying"  # for a worker that was lost since
            self._states[target] = "copying"
        if not is_under_way:
            copy = threading.Thread(
                target=self._copy, args=(machine, source, target), name="mlebench-copy", daemon=True
            )
            copy.start()
        return self.state(target)

    def state(self, target: Path) -> State:
        """Return how far a copy is."""
        with self._lock:
            return self._states.get(target, "impossible")

    def _copy(self, machine: Machine, source: str, target: Path) -> None:
        state: State = "copied" if self._copy_rest(machine, source, target) else "impossible"
        with self._lock:
            self._states[target] = state

    def _copy_rest(self, machine: Machine, source: str, target: Path) -> bool:
        """Copy what a file has more than its copy, again if that is interrupted."""
        for number in range(TRIES):
            if number:
                time.sleep(PAUSE_SECONDS * 2 ** (number - 1))
            try:
                with target.open("ab") as file:
                    rest = ["tail", "-c", f"+{file.tell() + 1}", "--", source]
                    done = subprocess.run(
                        ["ssh", *ssh_words(machine, self._keepalive), shlex.join(rest)],
                        stdin=subprocess.DEVNULL,
                        stdout=file,
                        stderr=subprocess.DEVNULL,
                        check=False,
                    )
            except OSError:
                return False
            if done.returncode >= 0 and done.returncode != _OF_SSH:
                return done.returncode == 0
        return False
