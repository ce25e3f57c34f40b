"""Leases of containers: what a dead worker left makes room for the next attempt."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from docker_jobs import HELPERS, SMALL

from pytest_mlebench.host.leases import LeaseClaim, LeaseLedger, lease_for
from pytest_mlebench.sandbox.docker import DockerSandbox, Engine, find_orphans

Worker = subprocess.Popen[str]

WORKER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from docker_jobs import JobMaker
from pytest_mlebench.sandbox.docker import DockerSandbox
from pytest_mlebench.host.leases import lease_for

maker = JobMaker(Path(sys.argv[2]), Path(sys.argv[3]))
job = maker(f"echo up; sleep {sys.argv[5]}", cpus=float(sys.argv[6]))
sandbox = DockerSandbox(cache=Path(sys.argv[2]), address=sys.argv[4], grace_seconds=1)
with lease_for(sandbox, job.limits, label="dead/seed0", waiting=len):
    began = time.monotonic()
    sandbox.run(job)
    print(began, time.monotonic(), flush=True)
"""


def start(folder: Path, data: Path, engine: Engine, seconds: float, cpus: float) -> Worker:
    here = str(HELPERS)
    arguments = [here, str(folder), str(data), engine.address, str(seconds), str(cpus)]
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
        start_new_session=True,
    )


def test_a_lease_covers_all_that_the_container_may_use(sandbox: DockerSandbox) -> None:
    assert sandbox.claim(SMALL) == LeaseClaim(1, 256 * 10**6, 0)
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
    worker = start(tmp_path / "w", data, engine, 60, 1)
    log = tmp_path / "w" / "attempt1" / "run.log"
    try:
        for _ in range(600):
            if log.exists() and "up" in log.read_text():
                break
            assert worker.poll() is None
            time.sleep(0.1)
        (entry,) = LeaseLedger().entries()
        assert entry.label == "dead/seed0"
    finally:
        worker.kill()
        worker.wait()
    assert worker.pid in {orphan.pid for orphan in find_orphans(engine)}
    with lease_for(sandbox, SMALL, label="next", waiting=print):
        assert worker.pid not in {orphan.pid for orphan in find_orphans(engine)}
        assert [entry.label for entry in LeaseLedger().entries()] == ["next"]


def test_of_eight_containers_on_an_engine_for_two_never_more_than_two_run(
    engine: Engine, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLEBENCH_LEASES_DIR", str(tmp_path / "leases"))
    half = engine.facts.cpus / 2
    workers = [start(tmp_path / f"w{number}", data, engine, 0.3, half) for number in range(8)]
    said = [worker.communicate(timeout=120)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 8
    spans = [tuple(map(float, text.split())) for text in said]
    at_once = [sum(began <= moment < ended for began, ended in spans) for moment, _ in spans]
    assert max(at_once) == 2
