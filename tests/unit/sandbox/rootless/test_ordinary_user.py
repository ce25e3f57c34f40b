"""Nobody has to be root: what the other tests say of the sandbox holds for a user too."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from other_user import USER, command_as_user
from rootless_images import needs_busybox

HERE = Path(__file__).parent
CHOSEN = "contract or written or modules or environment or folder"  # where root is another user


@needs_busybox
@pytest.mark.skipif(os.geteuid() != 0, reason="they are run by a user already")
def test_the_tests_of_the_sandbox_pass_for_an_ordinary_user() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to others
        os.chown(folder, USER, USER)
        command = command_as_user(
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
            *(f"--basetemp={folder}/tests", str(HERE / "test_rootless_sandbox.py"), "-k", CHOSEN),
        )
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=HERE.parents[3]
        )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert " passed" in done.stdout
