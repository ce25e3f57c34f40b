"""The baseline agent: an honest scikit-learn baseline for tables and text.

It looks at the data folder and never at the description: which tables there are, which columns
the sample wants, what its values look like. First it hands in the sample, then the best guess that
needs no features, then blends of cross-validated models, each better than the one before.

It runs wherever its folder is (``python FOLDER``) and needs pandas and scikit-learn.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from workspace import Workspace

SMALL = 20_000_000  # bytes of tables: up to here one thread is faster than several


def main() -> int:
    """Work through one competition."""
    workspace = Workspace.from_environment()
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # on busy cores, spinning takes forever
    if _size(workspace.data) <= SMALL:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    warnings.simplefilter("ignore")  # models that do not converge are judged by their loss
    from attempt import attempt  # late on purpose: OpenMP reads its variables when it is loaded

    return attempt(workspace)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*") if path.suffix in {".csv", ".zip"})


if __name__ == "__main__":
    sys.exit(main())
