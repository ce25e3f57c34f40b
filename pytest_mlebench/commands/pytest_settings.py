"""What a repository's settings of pytest say, for commands that run without pytest."""

from __future__ import annotations

import configparser
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_mlebench.errors import ConfigError

KEY = "mle_competitions"

# The files and sections in the order in which pytest looks for them, see "Configuration" in its
# reference; one without the section does not count, but for the first ones.
_INI = {"pytest.ini": "pytest", ".pytest.ini": "pytest", "tox.ini": "pytest"}
_NAMES = (
    *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"),
    *("pyproject.toml", "tox.ini", "setup.cfg"),
)


def own_competitions(start: Path | None = None) -> tuple[Path, ...]:
    """Return the folders that ``mle_competitions`` names in the settings that pytest would read."""
    path, found = _settings(start)
    return tuple(path.parent / name for name in _paths(found.get(KEY), path))


def folder_setting(key: str) -> tuple[Path, str] | None:
    """Return a folder that the settings name, and how they say it; None where they do not.

    As for pytest, a relative one is below the current folder.
    """
    path, found = _settings(None)
    if key not in found:
        return None
    label, value = f"{key} in {path.name}", found[key]
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{label} must name a folder, given: {value!r}")
    return Path(value).expanduser(), label


def _settings(start: Path | None) -> tuple[Path, dict[str, Any]]:
    """Return the file whose settings pytest would read, and what they are."""
    here = (start or Path()).absolute()
    for folder in (here, *here.parents):
        for name in _NAMES:
            found = _section(folder / name)
            if found is not None:
                return folder / name, found
    return here, {}


def _section(path: Path) -> dict[str, Any] | None:
    """Return pytest's settings in a file; None if it has none."""
    if not path.is_file():
        return None
    try:
        if path.suffix == ".toml":
            return _toml_section(path)
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, configparser.Error) as error:
        raise ConfigError(f"cannot read pytest's settings in {path}: {error}") from None
    section = _INI.get(path.name, "tool:pytest")
    if parser.has_section(section):
        return dict(parser.items(section))
    return {} if path.name.endswith("pytest.ini") else None


def _toml_section(path: Path) -> dict[str, Any] | None:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    if path.name != "pyproject.toml":
        found: dict[str, Any] = data.get("pytest", {})
        return found
    tool = data.get("tool", {}).get("pytest")
    if tool is None:
        return None
    section: dict[str, Any] | None = tool.get("ini_options")
    return section if section is not None else dict(tool)


def _paths(value: object, path: Path) -> Iterator[str]:
    """Yield the paths of a setting that pytest reads as ``paths``."""
    if value is None:
        return
    words = shlex.split(value) if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ConfigError(f"{path}: {KEY} must be a list of folders, given: {value!r}")
    yield from words
