"""``python -m pytest_mlebench`` is ``pytest-mlebench``."""

from __future__ import annotations

import sys

from pytest_mlebench.cli import main

if __name__ == "__main__":
    sys.exit(main())
