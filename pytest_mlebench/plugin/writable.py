"""Whether something can be written where an option, an ini key or a variable says so."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from pytest_mlebench._problems import Remedy
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.plugin import options
from pytest_mlebench.store.location import STORE_VARIABLE, usual_store


def require_report(path: Path, label: str) -> None:
    """Refuse a report's path that could not be written after the last agent."""
    if path.is_dir():
        raise ConfigError(f"{label} names a folder, not a file: {path}")
    if path.exists() and not os.access(path, os.W_OK):
        raise ConfigError(f"{label} names a file that cannot be written: {path}")
    require_room(path.parent, label, path)


def require_folder(path: Path, label: str) -> None:
    """Refuse a folder that is a file or could not be made."""
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{label} must be a folder, given: {path}")
    if not path.exists():
        require_room(path.parent, label, path)


def require_room(folder: Path, label: str, given: Path) -> None:
    """Refuse a folder that is not there and cannot be made, or in which nothing can be made."""
    above = folder.absolute()
    while not above.exists() and above != above.parent:
        above = above.parent
    if not above.is_dir():
        raise ConfigError(f"{label} is below a file, {above}, given: {given}")
    try:
        tempfile.TemporaryFile(dir=above).close()  # permissions do not tell it all: /proc, quotas
    except OSError as error:
        raise ConfigError(
            f"{label} is in a folder that cannot be written, {above} ({error.strerror}), "
            f"given: {given}: choose another"
        ) from None


def store_label(config: pytest.Config) -> str:
    """Return what has chosen the dataset store, as the user wrote it."""
    if not options.is_given(config, "data-dir") and os.environ.get(STORE_VARIABLE):
        return STORE_VARIABLE
    return options.spelled(config, "data-dir")


def other_store(config: pytest.Config) -> Remedy:
    """Return what to type instead of a store that cannot be used."""
    if options.on_command_line(config, "data-dir"):
        return {"data-dir": None}
    return {"data-dir": str(usual_store())}
