"""An attempt on an engine that does not share our files: on another machine, or in a virtual one.

The data are copied into a volume once per competition; what the agent writes stays in its container
and is brought home at its end, where it is as hostile as anything else; the format check is reached
by a bridge. All of it goes over the engine's own connection: nothing else has to be reachable.
"""

from __future__ import annotations

import io
import socket
import tarfile
from collections.abc import Mapping
from functools import partial

from pytest_mlebench.sandbox import Job
from pytest_mlebench.sandbox.account import HOME, Account
from pytest_mlebench.sandbox.docker.bridge import Bridge
from pytest_mlebench.sandbox.docker.container import Container
from pytest_mlebench.sandbox.docker.copy_out import fetch
from pytest_mlebench.sandbox.docker.engine import Engine
from pytest_mlebench.sandbox.docker.home import WRITABLE, Home
from pytest_mlebench.sandbox.docker.prepared_image import SOCKETS


class RemoteHome(Home):
    """What is seen as ``/home`` by an agent elsewhere; here is only what comes back."""

    def __init__(self, engine: Engine, job: Job, account: Account, volume: str) -> None:
        super().__init__(job, account)
        self._engine = engine
        self._volume = volume
        self._names: list[str] = []

    def _lay_out(self) -> None:
        for name in WRITABLE:
            (self.path / name).mkdir()

    def mounts(self) -> Mapping[str, tuple[str, bool]]:
        """Return the volume of the data; the rest is the container's own."""
        return {f"{HOME}/data": (self._volume, True)}

    def listen(self, name: str) -> socket.socket:
        """Return a listening socket of ours, to which a bridge will lead."""
        self._names.append(name)
        return super().listen(name)

    def fill(self, container: Container) -> None:
        """Copy the instructions in."""
        content = self._job.instructions.encode()
        member = tarfile.TarInfo("instructions.txt")
        member.size, member.mode = len(content), 0o644
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.addfile(member, io.BytesIO(content))
        container.copy_in(HOME, archive.getvalue())

    def connect(self, container: Container) -> None:
        """Build a bridge to every socket that listens."""
        for name in self._names:
            Bridge(self._engine, container.id, f"{SOCKETS}/{name}", partial(self._dial, name))

    def fetch(self, container: Container) -> None:
        """Bring home what the agent left."""
        fetch(container, self.path, self._job.limits)

    def _dial(self, name: str) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with self._short_path(name) as path:
            connection.connect(path)
        return connection
