"""A short form of the campaign of random faults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from host_machines import HostMachines

CAMPAIGN = Path(__file__).parents[2] / "benchmarks" / "fault_campaign.py"


def test_twenty_random_faults_lose_and_double_nothing(three_hosts: HostMachines) -> None:
    assert three_hosts.names  # that these could be made says that the campaign's can
    words = ("--faults=20", "--seed=7", "--seeds=4", "--pause=2")
    done = subprocess.run(
        [sys.executable, CAMPAIGN, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "every item was graded exactly once" in done.stdout
