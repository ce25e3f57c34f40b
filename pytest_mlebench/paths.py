"""Where things are: the built-in competitions, the dataset store, the runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STORE_VARIABLE = "MLEBENCH_DATA_DIR"


def builtin_competitions() -> Path:
    """Return the folder of the competitions that come with the plugin."""
    package = Path(__file__).parent
    inside = package / "competitions"  # in a wheel; beside the package in a checkout
    return inside if inside.is_dir() else package.parent / "competitions"


def default_store() -> Path:
    """Return the dataset store: the environment's, else the reference implementation's own."""
    if chosen := os.environ.get(STORE_VARIABLE):
        return Path(chosen).expanduser()
    import platformdirs  # late on purpose: only when a dataset is wanted

    return Path(platformdirs.user_cache_dir("mle-bench")) / "data"


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


def write_text(path: Path, text: str) -> None:
    """Write *text* to *path*: all of it, or nothing."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
