"""The workspace of the process sandbox: the contract's tree in a folder of the attempt."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.sandbox import Job
from pytest_mlebench.sandbox.validator import validate_script

_IN_HOME = re.compile(r"/home(?=/(data|submission|logs|code|agent|instructions|validate)\b)")
NOT_THE_AGENT = {".git", ".hg", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}


def lay(job: Job, validate_url: str, *, link_data: bool) -> Path:
    """Make ``home`` in the attempt's folder; the data are linked to, or copied if that is safer."""
    home = (job.folder / "home").resolve()
    try:
        home.mkdir(parents=True)
        for name in ("submission", "logs", "code", "tmp"):
            (home / name).mkdir()
        # the instructions speak of the contract's /home, which is here
        text = _IN_HOME.sub(lambda _: str(home), job.instructions)
        (home / "instructions.txt").write_text(text, encoding="utf-8")
        script = home / "validate_submission.sh"
        script.write_text(validate_script(validate_url), encoding="utf-8")
        script.chmod(0o755)
        _lay_agent(job, home / "agent")
        if link_data:
            (home / "data").symlink_to(job.data.resolve())
        else:
            shutil.copytree(job.data, home / "data")
    except (OSError, shutil.Error) as problem:
        raise SandboxError(f"cannot lay out the workspace {home}: {problem}") from problem
    return home


def _lay_agent(job: Job, target: Path) -> None:
    if job.agent.folder is None:
        target.mkdir()
        return
    apart = {path.resolve() for path in job.hidden} | {job.folder.resolve()}
    ignore = _Ignore(apart)
    shutil.copytree(job.agent.folder, target, symlinks=True, ignore=ignore)
    for path in ignore.environments:
        (target / path.relative_to(job.agent.folder)).symlink_to(path.resolve())


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
