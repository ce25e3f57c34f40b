"""Files: atomic writes, which appear whole or not at all; and paths as people write them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside *path* that replaces it when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def short_path(path: Path) -> str:
    """Return a path as one would type it: relative where it is below, with ``~`` for home."""
    path = path.absolute()
    for start, name in ((Path.cwd(), ""), (Path.home(), "~/")):
        if path.is_relative_to(start) and path != start:
            return name + str(path.relative_to(start))
    return str(path)


def write_text(path: Path, text: str) -> None:
    """Write *text* to *path*: all of it, or nothing."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
