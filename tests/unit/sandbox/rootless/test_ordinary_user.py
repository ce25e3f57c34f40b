"""Nobody has to be root: what the other tests say of the sandbox holds for a user too."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from other_user import pytest_as_user
from rootless_images import needs_busybox

HERE = Path(__file__).parent
CHOSEN = "contract or written or modules or environment or folder"  # where root is another user


@needs_busybox
@pytest.mark.skipif(os.geteuid() != 0, reason="they are run by a user already")
def test_the_tests_of_the_sandbox_pass_for_an_ordinary_user() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to others
        pytest_as_user(Path(folder), str(HERE / "test_rootless_sandbox.py"), "-k", CHOSEN)
