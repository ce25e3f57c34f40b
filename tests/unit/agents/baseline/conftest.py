"""What tests of the baseline agent share."""

from __future__ import annotations

from pathlib import Path

import pytest
from baseline_agent import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return an empty workspace."""
    return Home.make(tmp_path)
