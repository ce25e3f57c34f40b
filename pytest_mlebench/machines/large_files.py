"""Large files, copied from a host by an ssh of their own: faster than piece by piece."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Literal

from pytest_mlebench.machines.hosts_file import Machine
from pytest_mlebench.machines.ssh import ssh_words

State = Literal["copying", "copied", "impossible"]


class LargeFiles:
    """The copies that are under way; each in a thread of its own, for it may take an hour."""

    def __init__(self, keepalive: float) -> None:
        self._keepalive = keepalive
        self._states: dict[Path, State] = {}

    def begin(self, machine: Machine, source: str, target: Path) -> State:
        """Begin to copy a file of a machine, if there is a way to do that."""
        if machine.srun is not None or shutil.which("ssh") is None:
            return "impossible"
        self._states[target] = "copying"
        copy = threading.Thread(
            target=self._copy, args=(machine, source, target), name="mlebench-copy", daemon=True
        )
        copy.start()
        return self.state(target)

    def state(self, target: Path) -> State:
        """Return how far a copy is."""
        return self._states.get(target, "impossible")

    def _copy(self, machine: Machine, source: str, target: Path) -> None:
        words = ["ssh", *ssh_words(machine, self._keepalive), shlex.join(["cat", "--", source])]
        try:
            target.unlink(missing_ok=True)
            with target.open("xb") as file:
                done = subprocess.run(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.DEVNULL,
                    check=False,
                )
        except OSError:
            self._states[target] = "impossible"
        else:
            self._states[target] = "copied" if done.returncode == 0 else "impossible"
