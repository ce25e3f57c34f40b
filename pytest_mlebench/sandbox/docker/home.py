"""An attempt's folders on our side."""

from __future__ import annotations

import os
import socket
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pytest_mlebench.errors import ConfigError, SandboxError
from pytest_mlebench.limits import show_size
from pytest_mlebench.sandbox import Job
from pytest_mlebench.sandbox.collect import remove_tree
from pytest_mlebench.sandbox.docker.prepared import HOME, Account
from pytest_mlebench.sandbox.docker.request import SOCKETS

WRITABLE = ("submission", "logs", "code")
AGENT_FOLDER_LIMIT = 10**9

_SKIPPED = {".git", ".venv", "__pycache__", "node_modules"}


class HomeFolder:
    """The part of ``/home`` that outlives the container: bound in, and ours when it is gone."""

    def __init__(self, job: Job, account: Account) -> None:
        self._job = job
        self.path = job.folder / "home"
        self._sockets = job.folder / "sockets"
        for folder in (self.path, self._sockets):
            remove_tree(folder)
            folder.mkdir()
        for name in WRITABLE:
            self._make_writable(self.path / name, account)
        instructions = self.path / "instructions.txt"
        instructions.write_text(job.instructions, encoding="utf-8")
        instructions.chmod(0o644)
        _require_readable(job.data)

    def binds(self) -> dict[str, tuple[str, bool]]:
        """Return what is bound where, and whether read-only."""
        home = self.path.resolve()
        return {
            f"{HOME}/data": (str(self._job.data.resolve()), True),
            f"{HOME}/instructions.txt": (str(home / "instructions.txt"), True),
            **{f"{HOME}/{name}": (str(home / name), False) for name in WRITABLE},
            SOCKETS: (str(self._sockets.resolve()), True),
        }

    def listen(self, name: str) -> socket.socket:
        """Return a socket that listens in the folder that is bound in, open to the agent's user."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        folder = os.open(self._sockets, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # The path of a socket has at most 107 bytes, that of a run may have more.
            listener.bind(f"/proc/self/fd/{folder}/{name}")
        finally:
            os.close(folder)
        (self._sockets / name).chmod(0o666)
        listener.listen(64)
        return listener

    def remove(self) -> None:
        """Delete the folders; what was worth keeping has been collected."""
        remove_tree(self.path)
        remove_tree(self._sockets)

    def _make_writable(self, folder: Path, account: Account) -> None:
        folder.mkdir()
        folder.chmod(0o755)
        if os.getuid() == 0 and account.uid != 0:
            os.chown(folder, account.uid, account.gid)


@contextmanager
def agent_archive(folder: Path, account: Account, scratch: Path) -> Iterator[IO[bytes]]:
    """Yield the agent's own files as a tar archive, owned by the agent's user."""
    total = 0

    def admit(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        nonlocal total
        if Path(member.name).name in _SKIPPED:
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


def _require_readable(data: Path) -> None:
    """Refuse data that the agent's user could not read, before the agent stumbles over it."""
    if not data.is_dir():
        raise SandboxError(f"the data folder does not exist: {data}")
    if os.getuid() == 0 and data.stat().st_mode & 0o005 != 0o005:
        raise SandboxError(
            f"the agent's user may not read {data}: chmod -R a+rX makes the data readable"
        )
