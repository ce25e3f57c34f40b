"""The baseline agent: an honest scikit-learn baseline for tables, text, pictures and sounds.

It looks at the data folder and never at the description: which tables and files there are, which
columns the sample wants, what its values look like. First it hands in the sample, then the best
guess that needs no features, then blends of cross-validated models, each better than the one
before. Where masks or pixels are asked for, it learns pixels.

It runs wherever its folder is (``python FOLDER``) and needs pandas and scikit-learn; pictures need
pillow, archives in the 7z format need py7zr.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from workspace import Workspace

SMALL = 20_000_000  # bytes of data: up to here one thread is faster than several


def main() -> int:
    """Work through one competition."""
    workspace = Workspace.from_environment()
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # on busy cores, spinning takes forever
    if _is_small(workspace.data):
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    warnings.simplefilter("ignore")  # models that do not converge are judged by their loss
    from attempt import attempt  # late on purpose: OpenMP reads its variables when it is loaded

    return attempt(workspace)


def _is_small(folder: Path) -> bool:
    """Tell whether there is little data, without a look at every file."""
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            size += (Path(parent) / name).lstat().st_size
            if size > SMALL:
                return False
    return True


if __name__ == "__main__":
    sys.exit(main())
