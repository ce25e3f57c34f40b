"""Engines of a test's own, beside the one that the other tests share."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
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


class SshHost:
    """This host, reached by ssh with a key of its own."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
        if sshd is None:
            raise FileNotFoundError("sshd (Debian: openssh-server)")
        for name in ("host", "key"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True
            )
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        (folder / "sshd_config").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nStrictModes no\n"
            f"AuthorizedKeysFile {folder}/key.pub\nPidFile none\nSetEnv DOCKER_HOST={address}\n"
        )
        (folder / "ssh_config").write_text(
            f"Host mlehost\n HostName 127.0.0.1\n Port {port}\n IdentityFile {folder}/key\n"
            " StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n"
        )
        # ssh takes its configuration from the user's own home, which is not ours to change.
        (folder / "bin").mkdir()
        (folder / "bin" / "ssh").write_text(
            f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/ssh_config "$@"\n'
        )
        (folder / "bin" / "ssh").chmod(0o755)
        Path("/run/sshd").mkdir(exist_ok=True)
        self.process = subprocess.Popen([sshd, "-D", "-f", folder / "sshd_config"])
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                return
            time.sleep(0.05)
        raise TimeoutError("sshd does not listen")
