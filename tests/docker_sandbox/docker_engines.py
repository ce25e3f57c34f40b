"""Engines of a test's own, beside the one that the other tests share."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


class OwnEngine:
    """A second engine, which may be stopped and killed."""

    def __init__(self, name: str) -> None:
        self.folder = Path(f"/tmp/mle-{os.getpid()}-{name[:20]}")  # short: it holds a socket
        self._env = os.environ | {
            "MLEBENCH_ENGINE_DIR": str(self.folder),
            "MLEBENCH_ENGINE_APART": name,
        }

    def __call__(self, verb: str) -> str:
        result = subprocess.run(
            [ROOT / "scripts" / "engine", verb],
            env=self._env,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return result.stdout.strip().removeprefix("export DOCKER_HOST=")

    def kill(self) -> None:
        """End the engine without a word; its containers live on."""
        os.kill(int((self.folder / "docker.pid").read_text()), signal.SIGKILL)
