"""An attempt's folders on our side, and how a container is tied to them."""

from __future__ import annotations

import logging
import os
import socket
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pytest_mlebench._units import show_size
from pytest_mlebench.errors import ConfigError, SandboxError
from pytest_mlebench.layout import AttemptFolder
from pytest_mlebench.sandbox import Job, require_readable
from pytest_mlebench.sandbox.account import HOME, Account
from pytest_mlebench.sandbox.collect import NotCollected, remove_tree
from pytest_mlebench.sandbox.docker.container import Container
from pytest_mlebench.sandbox.docker.prepared_image import SOCKETS
from pytest_mlebench.sandbox.hidden import hidden_folders
from pytest_mlebench.sandbox.process.workspace import NOT_THE_AGENT

WRITABLE = ("submission", "logs", "code")
AGENT_FOLDER_LIMIT = 10**9

logger = logging.getLogger(__name__)


class Home:
    """What is seen as ``/home`` by an agent on this machine: bound in, and ours when it is gone."""

    def __init__(self, job: Job, account: Account) -> None:
        self._job = job
        self._account = account
        self.path = job.folder / "home"
        self._sockets = AttemptFolder(job.folder).sockets
        if not job.data.is_dir():
            raise SandboxError(f"the data folder does not exist: {job.data}")
        for folder in (self.path, self._sockets):
            remove_tree(folder)
            folder.mkdir()
        self._lay_out()

    def _lay_out(self) -> None:
        for name in WRITABLE:
            folder = self.path / name
            folder.mkdir()
            folder.chmod(0o755)
            if os.getuid() == 0 and self._account.uid != 0:
                os.chown(folder, self._account.uid, self._account.gid)
        instructions = self.path / "instructions.txt"
        instructions.write_text(self._job.instructions, encoding="utf-8")
        instructions.chmod(0o644)
        require_readable(self._job.data)

    def mounts(self) -> Mapping[str, tuple[str, bool]]:
        """Return what is mounted where, and whether read-only."""
        home = self.path.resolve()
        return {
            f"{HOME}/data": (str(self._job.data.resolve()), True),
            f"{HOME}/instructions.txt": (str(home / "instructions.txt"), True),
            **{f"{HOME}/{name}": (str(home / name), False) for name in WRITABLE},
            SOCKETS: (str(self._sockets.resolve()), True),
        }

    def listen(self, name: str) -> socket.socket:
        """Return a listening socket of ours that is *name* in the container's SOCKETS."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with self._short_path(name) as path:
            listener.bind(path)
        (self._sockets / name).chmod(0o666)
        listener.listen(64)
        return listener

    def fill(self, container: Container) -> None:
        """Put into a container, before it starts, what is not mounted."""

    def connect(self, container: Container) -> None:
        """Tie a container that has just started to the sockets that listen."""

    def fetch(self, container: Container) -> None:
        """Bring home what an agent left in a container that has ended."""

    def remove(self) -> None:
        """Delete the folders; what was worth keeping has been collected."""
        for folder in (self.path, self._sockets):
            try:
                remove_tree(folder)
            except (
                OSError,
                NotCollected,
            ) as problem:  # a container that outlived its engine writes on
                logger.warning("cannot remove %s: %s", folder, problem)

    @contextmanager
    def _short_path(self, name: str) -> Iterator[str]:
        """Yield a path of a socket: it has at most 107 bytes, and that of a run may have more."""
        if not Path("/proc/self/fd").is_dir():  # macOS, where there is no such way around it
            yield str(self._sockets / name)
            return
        folder = os.open(self._sockets, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{folder}/{name}"
        finally:
            os.close(folder)


@contextmanager
def agent_archive(
    folder: Path, account: Account, *, hidden: Sequence[Path], scratch: Path
) -> Iterator[IO[bytes]]:
    """Yield the agent's own files as a tar archive, owned by the agent's user.

    The folder may be a whole project, with the datasets and the runs in it: they stay outside.
    """
    apart = hidden_folders(hidden)
    total = 0

    def admit(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        nonlocal total
        place = folder / member.name
        if place.name in NOT_THE_AGENT or (place / "pyvenv.cfg").is_file():
            return None
        if Path(os.path.realpath(place)) in apart:
            return None
        total += member.size
        if total > AGENT_FOLDER_LIMIT:
            raise ConfigError(
                f"the agent's folder {folder} has more than {show_size(AGENT_FOLDER_LIMIT)}: "
                "put large files into the image, or mount them"
            )
        member.uid, member.gid, member.uname, member.gname = account.uid, account.gid, "", ""
        return member

    with tempfile.TemporaryFile(dir=scratch) as file:
        with tarfile.open(fileobj=file, mode="w") as tar:
            tar.add(folder, arcname=".", filter=admit)
        file.seek(0)
        yield file
