"""A way to an engine over ssh: its socket there, forwarded to a socket here.

``ssh://[USER@]HOST[:PORT][/PATH.sock]`` names the host, and the engine's socket if it is not where
docker on that host looks for it. Keys and names are those of the user's own ssh configuration;
nothing but ssh is needed on either side.

The docker package's own ssh (7.2, ``use_ssh_client``) was tried and is no replacement: it passes
port 22 where the user's ssh configuration has another one, takes no path of a socket, needs
paramiko here and the docker command there, starts ssh for every connection (the same test takes
17 s instead of 2 s), and loses what ssh says when a host cannot be reached.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import weakref
from pathlib import Path
from urllib.parse import urlsplit

from pytest_mlebench.errors import ConfigError

USUAL = "/var/run/docker.sock"

_ENDPOINT = ("docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
_PATIENCE = 30.0  # seconds for ssh to connect


class Tunnel:
    """A local address of an engine behind ssh, for as long as this object lives."""

    def __init__(self, address: str) -> None:
        if shutil.which("ssh") is None:
            raise ConfigError(
                f"DOCKER_HOST={address} needs the program ssh, which is not installed"
            )
        url = urlsplit(address)
        if not url.hostname:
            raise ConfigError(f"DOCKER_HOST must be ssh://[USER@]HOST[:PORT], given: {address}")
        self._host = f"{url.username}@{url.hostname}" if url.username else url.hostname
        port = ["-p", str(url.port)] if url.port else []
        self._ssh = ["ssh", "-o", "BatchMode=yes", *port]
        path = url.path if url.path.strip("/") else self._ask_for_path()
        folder = Path(tempfile.mkdtemp(prefix="mle-ssh-"))
        self._log = folder / "log"
        self.address = f"unix://{folder}/engine.sock"
        self._process = self._forward(folder / "engine.sock", path)
        self._finalizer = weakref.finalize(self, _close, folder, self._process)
        self._wait_for(folder / "engine.sock")

    def said(self) -> str:
        """Return the last line that ssh had to say, or nothing."""
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        """End the connection."""
        self._finalizer()

    def _ask_for_path(self) -> str:
        """Return where docker on the other side looks for its engine."""
        answer = subprocess.run(
            [*self._ssh, self._host, "--", *(f"'{word}'" for word in _ENDPOINT)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.returncode == 255:  # ssh's own failure
            raise ConfigError(f"ssh cannot reach {self._host}: {answer.stderr.strip()}")
        return answer.stdout.strip().removeprefix("unix://") or USUAL

    def _forward(self, local: Path, path: str) -> subprocess.Popen[bytes]:
        options = ("-N", "-o", "ExitOnForwardFailure=yes", "-L", f"{local}:{path}")
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*self._ssh, *options, self._host], stdin=subprocess.DEVNULL, stderr=log
            )

    def _wait_for(self, local: Path) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not local.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                problem = self.said()
                self.close()
                raise ConfigError(f"ssh cannot reach {self._host}: {problem}")
            time.sleep(0.05)


def _close(folder: Path, process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)
