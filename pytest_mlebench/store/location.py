"""Where the dataset store is."""

from __future__ import annotations

import os
from pathlib import Path

STORE_VARIABLE = "MLEBENCH_DATA_DIR"


def default_store() -> Path:
    """Return the dataset store: the environment's, else the reference implementation's own."""
    if chosen := os.environ.get(STORE_VARIABLE):
        return Path(chosen).expanduser()
    return usual_store()


def usual_store() -> Path:
    """Return the dataset store where nobody says anything: the reference implementation's own."""
    import platformdirs  # late on purpose: only when a dataset is wanted

    return Path(platformdirs.user_cache_dir("mle-bench")) / "data"
