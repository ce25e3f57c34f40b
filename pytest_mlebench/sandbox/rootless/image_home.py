"""The contract's tree in the attempt's folder, for an agent that finds it at /home in its image."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.sandbox import Job
from pytest_mlebench.sandbox.account import AGENT_DIR
from pytest_mlebench.sandbox.hidden import hidden_folders
from pytest_mlebench.sandbox.process.workspace import NOT_THE_AGENT, Workspace
from pytest_mlebench.sandbox.rootless.image_cache import UnpackedImage
from pytest_mlebench.sandbox.validator import validate_script

Admit = Callable[[Path], bool]


def lay_image_home(job: Job, validate_url: str, image: UnpackedImage) -> Workspace:
    """Make ``home`` in the attempt's folder: what the agent writes, and the files that are ours."""
    home = (job.folder / "home").resolve()
    try:
        home.mkdir(parents=True, exist_ok=home.is_mount())  # a disk of its own is there already
        for name in ("submission", "logs", "code", "tmp", "agent", "etc"):
            (home / name).mkdir()
        (home / "instructions.txt").write_text(job.instructions, encoding="utf-8")
        script = home / "validate_submission.sh"
        script.write_text(validate_script(validate_url), encoding="utf-8")
        script.chmod(0o755)
        _lay_agent(job, image, home / "agent")
    except (OSError, shutil.Error) as problem:
        raise SandboxError(f"cannot lay out the workspace {home}: {problem}") from problem
    return Workspace(home, ())


def copy_over(source: Path, target: Path, admit: Admit) -> None:
    """Copy a tree over another one; no link is followed, in neither of them."""
    for entry in sorted(os.scandir(source), key=lambda entry: entry.name):
        path, place = Path(entry.path), target / entry.name
        if not admit(path):
            continue
        mode = entry.stat(follow_symlinks=False).st_mode
        keeps = stat.S_ISDIR(mode) and place.is_dir() and not place.is_symlink()
        if os.path.lexists(place) and not keeps:
            _remove(place)
        if stat.S_ISDIR(mode):
            place.mkdir(exist_ok=True)
            copy_over(path, place, admit)
        elif stat.S_ISLNK(mode):
            place.symlink_to(path.readlink())
        elif stat.S_ISREG(mode):
            shutil.copy2(path, place, follow_symlinks=False)


def _lay_agent(job: Job, image: UnpackedImage, target: Path) -> None:
    """Lay the image's own /home/agent, and the agent's folder on top unless the image has it."""
    agent = job.agent
    copy_over(image.root / AGENT_DIR.lstrip("/"), target, lambda path: True)
    if agent.folder is None or agent.build is not None:
        return
    apart = hidden_folders(agent.without_image(job.hidden)) | {job.folder.resolve()}

    def admit(path: Path) -> bool:
        is_environment = (path / "pyvenv.cfg").is_file()  # of this host's Python
        return not (
            path.name in NOT_THE_AGENT or is_environment or Path(os.path.realpath(path)) in apart
        )

    copy_over(agent.folder, target, admit)


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()
