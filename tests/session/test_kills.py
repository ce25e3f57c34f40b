"""Kills at random moments, as a program: its short form."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

KILLS = Path(__file__).parents[2] / "benchmarks" / "kills.py"


@pytest.mark.slow
def test_a_kill_of_each_part_of_a_session_changes_no_report() -> None:
    done = subprocess.run(
        [sys.executable, KILLS, "4", "1"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 of 4 resumed to the same report" in done.stdout
