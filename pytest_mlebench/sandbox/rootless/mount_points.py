"""Places in an unpacked image at which something of ours is mounted: there, and no links.

An image is somebody else's: a link at such a place would lead a mount wherever it likes.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path, PurePosixPath

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.sandbox.account import AGENT_DIR, HOME

FOLDERS = (
    *("/proc", "/sys", "/dev", "/tmp", "/var/tmp", AGENT_DIR),
    *(f"{HOME}/{name}" for name in ("data", "submission", "logs", "code")),
)
FILES = (
    *("/etc/passwd", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"),
    *(f"{HOME}/instructions.txt", f"{HOME}/validate_submission.sh"),
)
_MAX_TEXT_BYTES = 1 << 20


def make_mount_points(root: Path) -> None:
    """Make the places that every agent needs, instead of whatever else the image has there."""
    for target in FOLDERS:
        make_mount_point(root, target, folder=True, instead=True)
    for target in FILES:
        make_mount_point(root, target, folder=False, instead=True)


def make_mount_point(root: Path, target: str, *, folder: bool, instead: bool = False) -> None:
    """Make one place; what is there and is of another kind is refused, or removed if *instead*."""
    *above, name = PurePosixPath(target).relative_to("/").parts or ("",)
    if not name or ".." in (*above, name):
        raise ConfigError(f"nothing can be mounted at {target!r} in an image")
    place = root
    for part in above:
        place /= part
        if not _is_folder(place):
            if os.path.lexists(place):
                raise ConfigError(
                    f"the image has a link or a file at {place.relative_to(root).as_posix()!r}, "
                    f"where a folder is needed for {target}"
                )
            place.mkdir(exist_ok=True)
    place /= name
    if _is_folder(place) if folder else _is_file(place):
        return
    if os.path.lexists(place):
        if not instead:
            raise ConfigError(
                f"the image has something else at {target} than what is to be mounted there"
            )
        if _is_folder(place):
            shutil.rmtree(place)
        else:
            place.unlink()
    if folder:
        place.mkdir(exist_ok=True)
    else:
        place.touch()


def read_text(root: Path, target: str) -> str | None:
    """Return a small text file of an image; None where there is no such file."""
    place = root
    for part in PurePosixPath(target).relative_to("/").parts:
        if place.is_symlink():
            return None
        place /= part
    if not _is_file(place) or place.stat().st_size > _MAX_TEXT_BYTES:
        return None
    return place.read_text(encoding="utf-8", errors="replace")


def _is_folder(place: Path) -> bool:
    return place.is_dir() and not place.is_symlink()


def _is_file(place: Path) -> bool:
    try:
        return stat.S_ISREG(place.lstat().st_mode)
    except FileNotFoundError:
        return False
