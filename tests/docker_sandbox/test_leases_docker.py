"""Leases of containers: what a dead worker left makes room for the next attempt."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from docker_jobs import SMALL

from pytest_mlebench.sandbox.docker import DockerSandbox, Engine, find_orphans
from pytest_mlebench.sandbox.leases import Claim, Ledger, lease_for

WORKER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from docker_jobs import JobMaker
from pytest_mlebench.sandbox.docker import DockerSandbox
from pytest_mlebench.sandbox.leases import lease_for

job = JobMaker(Path(sys.argv[2]), Path(sys.argv[3]))("echo up; sleep 60")
sandbox = DockerSandbox(cache=Path(sys.argv[2]), address=sys.argv[4], grace_seconds=1)
with lease_for(sandbox, job.limits, label="dead/seed0", waiting=print):
    sandbox.run(job)
"""


def test_a_lease_covers_all_that_the_container_may_use(sandbox: DockerSandbox) -> None:
    assert sandbox.claim(SMALL) == Claim(1, 256 * 10**6, 0)
    facts = sandbox.engine.facts
    capacity = sandbox.capacity(SMALL)
    assert (capacity.cpus, capacity.memory_bytes) == (facts.cpus, facts.memory_bytes)


def test_the_container_of_a_killed_worker_ends_before_its_lease_is_used_again(
    engine: Engine,
    sandbox: DockerSandbox,
    tmp_path: Path,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLEBENCH_LEASES_DIR", str(tmp_path / "leases"))
    command = [sys.executable, "-c", WORKER, str(Path(__file__).parent), str(tmp_path / "w")]
    worker = subprocess.Popen(
        [*command, str(data), engine.address], env=dict(os.environ), start_new_session=True
    )
    log = tmp_path / "w" / "attempt1" / "run.log"
    try:
        for _ in range(600):
            if log.exists() and "up" in log.read_text():
                break
            assert worker.poll() is None
            time.sleep(0.1)
        (entry,) = Ledger().entries()
        assert entry.label == "dead/seed0"
    finally:
        worker.kill()
        worker.wait()
    assert worker.pid in {orphan.pid for orphan in find_orphans(engine)}
    with lease_for(sandbox, SMALL, label="next", waiting=print):
        assert worker.pid not in {orphan.pid for orphan in find_orphans(engine)}
        assert [entry.label for entry in Ledger().entries()] == ["next"]
