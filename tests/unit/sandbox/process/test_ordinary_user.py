"""Root and everybody else get the same sandbox: what the other tests say holds for a user too."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from other_user import pytest_as_user

HERE = Path(__file__).parent
FILES = ("test_process_sandbox.py", "test_view.py", "test_walls.py")


@pytest.mark.skipif(os.geteuid() != 0, reason="they are run by a user already")
def test_the_tests_of_the_sandbox_pass_for_an_ordinary_user() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to others
        pytest_as_user(Path(folder), *(str(HERE / name) for name in FILES))
