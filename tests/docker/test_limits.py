"""Every limit really hits, and is reported as what it is."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from docker_images import PYTHON
from docker_jobs import SMALL, JobMaker

from pytest_mlebench.agent import Agent
from pytest_mlebench.sandbox.docker import DockerSandbox
from pytest_mlebench.sandbox.docker.engine import Engine

HOG = "x = bytearray(400_000_000); print('never')"


def python(script: str) -> Agent:
    """Return an agent that runs a Python script."""
    return Agent(name="python", image=PYTHON, command=("python3", "-uc", script))


def test_memory_ends_the_agent(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    job = make_job(agent=python(HOG), memory_bytes=100 * 10**6)
    outcome = sandbox.run(job)
    assert (outcome.reason, outcome.exit_code) == ("memory-limit", 137)
    assert outcome.details["oom"] is True
    assert "never" not in job.log.read_text()


def test_swap_is_not_on_top(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    script = "cat /sys/fs/cgroup/memory/memory.memsw.limit_in_bytes /sys/fs/cgroup/memory.swap.max"
    job = make_job(f"{script} 2>/dev/null; true", memory_bytes=104_857_600)
    sandbox.run(job)
    assert job.log.read_text().strip() in {"104857600", "0", ""}


def test_an_agent_that_survives_the_death_of_its_child_has_exited(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    script = (
        "import subprocess, sys\n"
        f"code = subprocess.run([sys.executable, '-c', {HOG!r}]).returncode\n"
        "print('child', code)"
    )
    job = make_job(agent=python(script), memory_bytes=100 * 10**6)
    outcome = sandbox.run(job)
    assert (outcome.reason, outcome.exit_code) == ("exited", 0)
    assert outcome.details["oom"] is True
    assert job.log.read_text() == "child -9\n"


def test_the_cpu_quota_throttles(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    spin = "(while true; do :; done) & (while true; do :; done) & sleep 3"
    outcome = sandbox.run(make_job(spin, cpus=0.1))
    throttling = outcome.details["throttling"]
    assert 3 < throttling["throttled_periods"] <= throttling["periods"]
    assert throttling["throttled_seconds"] > 0.3
    assert outcome.cpu_seconds is not None
    assert outcome.cpu_seconds < 0.1 * outcome.seconds + 0.2


def test_a_fork_bomb_is_contained(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    job = make_job("bomb() { bomb | bomb & }; bomb; sleep 2; echo alive; kill -9 -1", pids=40)
    outcome = sandbox.run(job)
    assert outcome.reason == "exited"
    assert "can't fork" in job.log.read_text()
    assert outcome.details["peak_pids"] <= 40


def test_shared_memory_is_as_large_as_asked(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    job = make_job("df -k /dev/shm | tail -1 | awk '{print $2}'", shm_bytes=32 * 2**20)
    sandbox.run(job)
    assert job.log.read_text() == f"{32 * 1024}\n"


def test_open_files_are_bounded(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    job = make_job("ulimit -n; ulimit -c", open_files=321)
    sandbox.run(job)
    assert job.log.read_text() == "321\n0\n"


def test_more_open_files_than_the_engine_may_give_are_as_many_as_it_has(
    engine: Engine, make_job: JobMaker, tmp_path: Path
) -> None:
    sandbox = DockerSandbox(cache=tmp_path, address=engine.address)
    job = make_job("ulimit -n", open_files=1_048_576)
    assert sandbox.run(job).exit_code == 0
    assert 1000 <= int(job.log.read_text()) <= 1_048_576


def test_out_of_time_what_is_there_is_collected(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    job = make_job(
        "echo id,target > $SUBMISSION_DIR/submission.csv; echo waiting; sleep 100",
        time_seconds=1.5,
    )
    outcome = sandbox.run(job)
    assert outcome.reason == "time-limit"
    assert job.submission.read_text() == "id,target\n"
    assert 1.5 <= outcome.seconds < 6


def test_at_the_limit_every_process_may_end_in_peace(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    # The shell dies of its signal at once; the child needs half a second for its last words.
    child = "trap 'sleep 0.5; echo saved; exit' TERM; echo ready; while true; do sleep 0.1; done"
    job = make_job(f'sh -c "{child}"; echo not reached', time_seconds=1.5)
    outcome = sandbox.run(job)
    assert outcome.reason == "time-limit"
    lines = job.log.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("ready", "saved")


def test_an_agent_that_ignores_sigterm_is_killed(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    job = make_job(
        "trap '' TERM; echo > $SUBMISSION_DIR/submission.csv; while true; do sleep 1; done",
        time_seconds=1,
    )
    started = time.monotonic()
    outcome = sandbox.run(job)
    assert (outcome.reason, outcome.exit_code) == ("time-limit", 137)
    assert job.submission.exists()
    assert time.monotonic() - started < 12


def test_background_processes_do_not_outlive_the_agent(
    sandbox: DockerSandbox, engine: Engine, make_job: JobMaker
) -> None:
    job = make_job(
        "(while true; do date > $LOGS_DIR/beat; sleep 0.1; done) & setsid sleep 100 & exit 0"
    )
    outcome = sandbox.run(job)
    assert (outcome.reason, outcome.exit_code) == ("exited", 0)
    assert outcome.seconds < 10


@pytest.mark.parametrize("where", ["/home/logs", "/tmp"])
def test_a_full_disk_ends_the_agent(sandbox: DockerSandbox, make_job: JobMaker, where: str) -> None:
    job = make_job(
        f"while true; do dd if=/dev/zero of={where}/$((i=i+1)) bs=1M count=20 2>/dev/null;"
        "sleep 0.2; done",
        disk_bytes=100 * 10**6,
    )
    outcome = sandbox.run(job)
    assert outcome.reason == "disk-limit"
    assert 100 * 10**6 < outcome.details["disk_bytes"] < 10**9


def test_a_long_log_is_bounded_and_keeps_both_ends(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    job = make_job("echo first; yes | head -c 50000000; echo last", log_bytes=10**6)
    outcome = sandbox.run(job)
    text = job.log.read_bytes()
    assert text.startswith(b"first\n")
    assert text.endswith(b"last\n")
    assert len(text) < 1.01 * 10**6
    assert outcome.details["log_bytes"] == 50_000_011
    assert outcome.details["log_dropped"] == 50_000_011 - 10**6


def test_the_log_can_be_read_while_the_agent_runs(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    job = make_job("echo one; sleep 3; echo two")
    seen: list[str] = []

    def look() -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not seen:
            if job.log.exists() and job.log.read_text():
                seen.append(job.log.read_text())
            time.sleep(0.05)

    reader = threading.Thread(target=look)
    reader.start()
    sandbox.run(job)
    reader.join()
    assert seen == ["one\n"]


def test_the_header_tells_engine_and_image(sandbox: DockerSandbox) -> None:
    lines = sandbox.preflight(python("1"), replace(SMALL, cpus=1), "none")
    assert lines[0] == f"engine: {sandbox.engine.facts.describe()}"
    assert lines[1].startswith(f"image: {PYTHON} (")
    assert "sha256:" in lines[1]
