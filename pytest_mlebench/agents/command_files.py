"""What the command of an agent names of this host: files, folders, and what a script may import."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path


def named_paths(command: Iterable[str]) -> Iterator[Path]:
    """Yield the absolute paths that the words of a command name, values of options included."""
    for word in command:
        named = Path(word[word.find("=") + 1 :] if word.startswith("-") else word)
        if named.is_absolute() and os.path.exists(named):  # noqa: PTH110  # it may be no path at all
            yield named


def modules_beside(path: Path) -> Iterator[Path]:
    """Yield what a Python script may import from its own folder; nothing for other files."""
    if path.suffix == ".py":
        yield from modules_in(path.parent)


def modules_in(folder: Path) -> Iterator[Path]:
    """Yield what can be imported from a folder; nothing else of it need be seen."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for path in entries:
        is_package = (path / "__init__.py").is_file()
        if is_package or (path.suffix in {".py", ".so"} and path.is_file()):
            yield path
