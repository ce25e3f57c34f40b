"""The workspace of the process sandbox: the contract's tree in a folder of the attempt."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.sandbox import Job
from pytest_mlebench.sandbox.hidden import hidden_folders
from pytest_mlebench.sandbox.process import kernel
from pytest_mlebench.sandbox.validator import validate_script

_IN_HOME = re.compile(r"/home(?=/(data|submission|logs|code|agent|instructions|validate)\b)")

# Above the numbers that systemd gives to containers, below those that are signed elsewhere:
# https://systemd.io/UIDS-GIDS. Nobody else's files have them, and no two workspaces the same.
FIRST_USER, USERS = 0x70000000, 0x0FFFFFFF
_NOBODY = 65534

DataPlace = Literal["mounted", "linked", "copied"]  # how the data come into the workspace

NOT_THE_AGENT = {".git", ".hg", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}


@dataclass(frozen=True)
class Workspace:
    """A workspace that has been laid out."""

    home: Path
    environments: tuple[Path, ...]  # virtual environments of the agent's folder, linked to
    disk: str = ""  # the file behind a disk of its own, if it has one


def lay(job: Job, validate_url: str, *, data: DataPlace) -> Workspace:
    """Make ``home`` in the attempt's folder, with the contract's tree in it."""
    home = (job.folder / "home").resolve()
    try:
        home.mkdir(parents=True, exist_ok=home.is_mount())  # a disk of its own is there already
        for name in ("submission", "logs", "code", "tmp"):
            (home / name).mkdir()
        # the instructions speak of the contract's /home, which is here
        text = _IN_HOME.sub(lambda _: str(home), job.instructions)
        (home / "instructions.txt").write_text(text, encoding="utf-8")
        script = home / "validate_submission.sh"
        script.write_text(validate_script(validate_url), encoding="utf-8")
        script.chmod(0o755)
        environments = _lay_agent(job, home / "agent")
        if data == "mounted":
            (home / "data").mkdir()
        elif data == "linked":
            (home / "data").symlink_to(job.data.resolve())
        else:
            shutil.copytree(job.data, home / "data")
    except (OSError, shutil.Error) as problem:
        raise SandboxError(f"cannot lay out the workspace {home}: {problem}") from problem
    return Workspace(home, environments)


def user_for(home: Path) -> int | None:
    """Return a user of its own for an agent where we are root; None where nobody else is known.

    Root in a container is seldom allowed to mount: its agents get the walls of an ordinary user's.
    """
    if os.geteuid() != 0 or not kernel.is_admin():
        return None
    # the folder around it: on a disk of its own all workspaces have the same number
    wanted = FIRST_USER + home.parent.stat().st_ino % USERS
    for candidate in (wanted, _NOBODY):
        if all(_is_known(candidate, Path("/proc/self", table)) for table in ("uid_map", "gid_map")):
            return candidate
    return None


def give(home: Path, user: int) -> None:
    """Make an agent's user the owner of its workspace."""
    for folder, folders, files in os.walk(home):
        for name in (".", *folders, *files):
            os.chown(Path(folder, name), user, user, follow_symlinks=False)


def _is_known(user: int, table: Path) -> bool:
    """Tell whether a number is one of this user namespace, see user_namespaces(7)."""
    for line in table.read_text(encoding="ascii").splitlines():
        first, _, count = map(int, line.split())
        if first <= user < first + count:
            return True
    return False


def _lay_agent(job: Job, target: Path) -> tuple[Path, ...]:
    if job.agent.folder is None:
        target.mkdir()
        return ()
    apart = hidden_folders(job.hidden) | {job.folder.resolve()}
    ignore = _Ignore(apart)
    shutil.copytree(job.agent.folder, target, symlinks=True, ignore=ignore)
    for path in ignore.environments:
        (target / path.relative_to(job.agent.folder)).symlink_to(path.resolve())
    return tuple(path.resolve() for path in ignore.environments)


class _Ignore:
    """Tell ``copytree`` what does not belong to an agent, and remember virtual environments.

    Those are linked to instead: they are large, and hold their own path in many places.
    """

    def __init__(self, apart: Iterable[Path]) -> None:
        self.environments: list[Path] = []
        self._apart = set(apart)

    def __call__(self, folder: str, names: list[str]) -> set[str]:
        ignored = NOT_THE_AGENT & set(names)
        for name in set(names) - ignored:
            path = Path(folder, name)
            if (path / "pyvenv.cfg").is_file() and not path.is_symlink():
                self.environments.append(path)
                ignored.add(name)
            elif self._apart and Path(os.path.realpath(path)) in self._apart:
                ignored.add(name)
        return ignored
