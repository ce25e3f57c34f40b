"""What must not be seen by agents: where it really is, and where the links in it lead to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

# A competition's folder in the store may be a link to another disk, and so may its parts.
_PARTS = ("*", "*/prepared", "*/prepared/private", "*/raw")


def hidden_folders(folders: Iterable[Path]) -> set[Path]:
    """Return the real places of hidden folders, and of what links in them lead to."""
    found = set()
    for folder in folders:
        found.add(folder.resolve())
        for part in _PARTS:
            found |= {path.resolve() for path in folder.glob(part) if path.is_symlink()}
    return found
