"""Write a scaffold: a tree of templates with names filled in, whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pytest_mlebench._files import write_text
from pytest_mlebench.errors import ConfigError

TEMPLATES = Path(__file__).parent
_SUFFIX = ".txt"  # a template is not code of this package, whatever it becomes
_FIELD = re.compile(r"@([A-Z_]+)@")


def templates(*trees: str) -> dict[str, str]:
    """Return the templates below some folders by the paths that they become; later ones win."""
    found = {}
    for tree in trees:
        root = TEMPLATES / tree
        for path in sorted(root.rglob(f"*{_SUFFIX}")):
            name = path.relative_to(root).as_posix().removesuffix(_SUFFIX)
            found[name.replace("dot.", ".")] = path.read_text(encoding="utf-8")
    return found


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return a template with every ``@NAME@`` replaced."""
    return _FIELD.sub(lambda match: values[match[1]], text)


def write_scaffold(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write files below a folder; refuse, before the first one, to replace any that exists."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"must be a folder, given: {folder}")
    there = [name for name in files if (folder / name).exists()]
    if there:
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise ConfigError(
            f"{folder / there[0]}{more} exists already and is left as it is: "
            "choose another folder, or move it away"
        )
    paths = []
    for name, text in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, text)
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error.strerror}") from None
        if text.startswith("#!"):
            path.chmod(0o755)
        paths.append(path)
    return paths
