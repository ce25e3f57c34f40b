"""Workers that Slurm starts, each in an allocation of its own; on a real Slurm of this machine."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_nvml import build
from filelock import FileLock
from host_machines import TWO, Gate, RunningSession, write_waiting_agent
from rootless_images import busybox_archive, needs_busybox
from sandbox_job import wait_until

from pytest_mlebench.machines.allocation_holder import socket_path

SCRIPT = Path(__file__).parents[2] / "scripts" / "slurm"
REQUIRED = "MLEBENCH_REQUIRE_SLURM"  # CI sets it: a test that skips there is a failure

Start = Callable[..., RunningSession]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Slurm of two nodes with two GPUs each, for the tests of one process at a time."""
    lacking = [name for name in ("slurmctld", "slurmd", "munged") if shutil.which(name) is None]
    problem = f"needs {', '.join(lacking)}" if lacking else ""
    if os.getuid() != 0:
        problem = "only root can start Slurm"
    if problem:
        verdict = pytest.fail if os.environ.get(REQUIRED) else pytest.skip
        verdict(problem)
    environment = os.environ | {"MLEBENCH_SLURM_DIR": str(tmp_path_factory.mktemp("slurm"))}
    with FileLock("/tmp/mlebench-slurm.lock"):  # its ports can be taken once
        output = subprocess.run(
            [SCRIPT, "start"], env=environment, capture_output=True, text=True, check=True
        ).stdout
        os.environ["SLURM_CONF"] = output.strip().partition("=")[2]
        yield
        del os.environ["SLURM_CONF"]
        subprocess.run([SCRIPT, "stop"], env=environment, check=True)


@pytest.fixture
def gate() -> Iterator[Gate]:
    """What holds the agents back."""
    gate = Gate()
    yield gate
    gate.shutdown()
    gate.server_close()


@pytest.fixture
def agent(gate: Gate, tmp_path: Path) -> str:
    """An agent that waits until it is let go."""
    return write_waiting_agent(tmp_path, gate.port, "127.0.0.1")


def write_toml(
    path: Path,
    srun: str = "--gres=gpu:1 -c2 --time=2:00:00",
    slots: int = 2,
    keepalive: str = "60s",
) -> str:
    folder = path / "nodes"
    lines = [
        f'keepalive = "{keepalive}"',
        "[slurm.pool]",
        f'srun = "{srun}"',
        f'python = "{sys.executable}"',
    ]
    lines += [f'folder = "{folder}"', f"slots = {slots}"]
    (path / "hosts.toml").write_text("\n".join(lines))
    return f"--mle-hosts={path / 'hosts.toml'}"


def jobs() -> list[str]:
    """Return the ids of all jobs that Slurm has, running or waiting."""
    command = ["squeue", "--noheader", "--format=%A"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return sorted(done.stdout.split(), key=int)


def no_jobs_left() -> bool:
    """Tell whether all jobs end; Slurm asks again after a minute where a step did not."""
    return wait_until(lambda: jobs() == [], 300)


def what_is_left() -> str:
    """Return what keeps jobs from ending: their states, why nodes are out, their processes."""
    shown = [
        subprocess.run(words, capture_output=True, text=True, check=False).stdout
        for words in (["squeue"], ["sinfo", "-R"], ["ps", "-eo", "pid,ppid,stat,wchan:24,args"])
    ]
    jobs_and_nodes, every = shown[:2], shown[2].splitlines()
    numbers = {str(pid) for pid in processes("")}
    ours = [line[:200] for line in every if line.split()[0] in numbers or "slurmstepd" in line]
    return "\n".join([*jobs_and_nodes, *ours])


def scancel() -> None:
    subprocess.run(["scancel", jobs()[-1]], check=True)


def preempt() -> None:
    """Ask for all of one node with a higher priority."""
    command = ["srun", "-p", "urgent", "-w", "n1", "--exclusive", "true"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def test_attempts_run_in_allocations_of_their_own(
    slurm: None, agent: str, gate: Gate, start: Start, tmp_path: Path
) -> None:
    session = start(agent, write_toml(tmp_path), *TWO)
    running = session.wait_for_running(2)
    assert set(running.values()) == {"pool"}
    assert len(jobs()) == 2
    gate.open.add("all")
    assert session.end() == 0, session.text
    for record in session.records().values():
        assert record["phase"] == "graded"
        # not the node's: 1000 MB for each CPU
        assert record["conditions"]["hardware"]["memory"] == "2.097GB"
        assert record["conditions"]["limits"]["memory_bytes"] == 2000 * 2**20
    assert no_jobs_left(), what_is_left()


@pytest.mark.parametrize("take", [scancel, preempt])
def test_an_item_whose_allocation_is_taken_away_is_tried_again(
    slurm: None,
    agent: str,
    gate: Gate,
    start: Start,
    tmp_path: Path,
    take: Callable[[], None],
) -> None:
    session = start(agent, write_toml(tmp_path, "-w n1 --time=2:00:00", 1), TWO[0])
    ((name, _),) = session.wait_for_running(1).items()
    take()
    session.wait_for_text("pool is lost")
    again = name.replace("attempt1", "attempt2")
    assert wait_until(lambda: again in session.running(), 240), session.text
    gate.open.add("all")
    assert session.end() == 0, session.text
    phases = {name: record["phase"] for name, record in session.records().items()}
    assert phases == {name: "error", again: "graded"}


def processes(*words: str) -> list[int]:
    """Return the processes with these words that know our Slurm, and no others."""
    found, ours = [], f"SLURM_CONF={os.environ['SLURM_CONF']}".encode()
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (path / "cmdline").read_bytes().decode(errors="replace")
            known = ours in (path / "environ").read_bytes().split(b"\0")
            if known and all(word in line for word in words):
                found.append(int(path.name))
    return found


def end_connections() -> None:
    for pid in processes("srun", "allocation_entry"):
        os.kill(pid, signal.SIGKILL)


def end_workers() -> None:
    """Kill the workers in allocations, but neither what connects them nor what they have forked."""
    entries = processes("allocation_entry")
    for pid in processes("sys.stdin.readline"):
        with contextlib.suppress(OSError):
            in_job = b"SLURM_JOB_ID=" in Path(f"/proc/{pid}/environ").read_bytes()
            if in_job and pid not in entries and not keeps(pid):
                os.kill(pid, signal.SIGKILL)


def keeps(pid: int) -> bool:
    return Path(f"/proc/{pid}/fd/1").readlink().name == ".keeper.log"


def test_an_attempt_outlives_its_worker_and_its_connection_to_an_allocation(
    slurm: None, agent: str, gate: Gate, start: Start, tmp_path: Path
) -> None:
    session = start(agent, write_toml(tmp_path, slots=1, keepalive="10s"), TWO[0])
    ((name, _),) = session.wait_for_running(1).items()
    job = jobs()
    for times, lose in enumerate((end_workers, end_connections), start=2):
        lose()
        assert wait_until(lambda: session.text.count("pool is here") == times, 120), session.text  # noqa: B023  # called at once
    assert jobs() == job
    gate.open.add("all")
    assert session.end() == 0, session.text
    records = session.records()
    assert {name: record["phase"] for name, record in records.items()} == {name: "graded"}
    assert [records[name]["conditions"]["job"]] == job
    assert no_jobs_left(), what_is_left()


def test_a_session_that_is_killed_finds_its_allocations_again(
    slurm: None, agent: str, gate: Gate, start: Start, tmp_path: Path
) -> None:
    option = write_toml(tmp_path)
    session = start(agent, option, *TWO)
    running = session.wait_for_running(2)
    began = {name: session.records()[name]["timings"]["running"] for name in running}
    held = jobs()
    session.process.kill()
    session.process.wait()
    again = start(agent, option, log="again")
    again.wait_for_text("pool is here")
    assert jobs() == held
    gate.open.add("all")
    assert again.end() == 0, again.text
    assert {n: r["timings"]["running"] for n, r in again.records().items()} == began
    assert {r["phase"] for r in again.records().values()} == {"graded"}
    assert no_jobs_left(), what_is_left()


def test_an_allocation_that_nobody_asks_for_ends_with_the_grace(
    slurm: None, agent: str, gate: Gate, start: Start, tmp_path: Path
) -> None:
    option = write_toml(tmp_path, slots=1, keepalive="2s")
    session = start(agent, option, TWO[0], "--mle-grace=5s")
    ((name, _),) = session.wait_for_running(1).items()
    (job,) = jobs()
    session.process.kill()
    session.process.wait()
    assert no_jobs_left(), what_is_left()
    assert not socket_path(job).parent.exists()
    gate.open.add("all")
    again = start(agent, option, log="again")
    assert again.end() == 0, again.text
    phases = {name: record["phase"] for name, record in again.records().items()}
    assert phases == {name: "error", name.replace("attempt1", "attempt2"): "graded"}
    assert no_jobs_left(), what_is_left()


def test_a_session_that_no_allocation_came_to_has_failed(
    slurm: None, agent: str, start: Start, tmp_path: Path
) -> None:
    python = tmp_path / "python"  # works where pytest runs, and not on the nodes
    python.write_text(
        f'#!/bin/sh\n[ "$2" != pytest_mlebench.machines.allocation_holder ] || exit 3\n'
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    option = write_toml(tmp_path, slots=1)
    toml = tmp_path / "hosts.toml"
    toml.write_text(toml.read_text().replace(sys.executable, str(python)))
    session = start(agent, option, TWO[0], "--mle-grace=5s", "--mle-fail-under=0")
    assert session.end() == pytest.ExitCode.TESTS_FAILED, session.text
    assert "has ended before a worker could join it" in session.text
    assert "missed: nothing ran: no host came to work" in session.text
    assert "--mle-run=r (resumes)" in session.text
    assert jobs() == []


def test_words_that_sbatch_does_not_know_are_refused(
    slurm: None, agent: str, start: Start, tmp_path: Path
) -> None:
    session = start(agent, write_toml(tmp_path, "--pty --time=2:00:00"), TWO[0])
    assert session.end() == pytest.ExitCode.USAGE_ERROR
    assert "  pool: sbatch refuses srun = '--pty --time=2:00:00': unrecognized option '--pty'" in (
        session.text
    )
    assert jobs() == []


def test_the_session_itself_can_be_a_job(slurm: None, tmp_path: Path) -> None:
    write_toml(tmp_path)
    command = [sys.executable, "-m", "pytest_mlebench", "slurm-script", "--time=3:00:00"]
    options = ("--mle-agent=dummy", *TWO, "--mle-run=r", "-p", "no:cacheprovider")
    done = subprocess.run(
        [*command, "--log=log", "--", *options], cwd=tmp_path, capture_output=True, check=True
    )
    assert done.stdout == b"mlebench.sbatch: start it with sbatch mlebench.sbatch\n"
    job = ["sbatch", "--wait", "mlebench.sbatch"]
    status = subprocess.run(job, cwd=tmp_path, capture_output=True, check=False).returncode
    log = (tmp_path / "log").read_text()
    assert status == 0, log
    assert "pool is here: 2 at a time" in log
    report = json.loads((tmp_path / "mle-runs/r/report.json").read_text())
    assert [result["outcome"] for result in report["results"]] == ["graded"] * 2
    assert no_jobs_left(), what_is_left()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("-p short", "the partition's usual time of 20m is shorter than the time limit of 10m and"),
        ("-p short --time=20", "--time of 20m is shorter than the time limit of 10m and 15m"),
    ],
)
def test_an_allocation_that_is_too_short_is_refused(
    slurm: None, agent: str, start: Start, tmp_path: Path, words: str, sentence: str
) -> None:
    session = start(agent, write_toml(tmp_path, words), TWO[0])
    assert session.end() == pytest.ExitCode.USAGE_ERROR
    assert f"  pool: {sentence}" in session.text


def test_the_gpus_of_an_attempt_are_those_of_its_allocation(
    slurm: None,
    agent: str,
    gate: Gate,
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(build(tmp_path)))
    gpus = ";".join(f"GPU-{number},NVIDIA A10,24000000000" for number in range(4))
    monkeypatch.setenv("FAKE_GPUS", gpus)
    gate.open.add("all")
    session = start(agent, write_toml(tmp_path, "--gres=gpu:1 -c2", 1), TWO[0], "--mle-gpus=1")
    assert session.end() == 0, session.text
    (record,) = session.records().values()
    assert [gpu["id"] for gpu in record["conditions"]["gpus"]] == ["GPU-0"]
    many = start(agent, write_toml(tmp_path, "--gres=gpu:1", 1), TWO[0], "--mle-gpus=2", run="m")
    many.wait_for_text("pool cannot take part: 2 GPUs with ")
    many.process.send_signal(signal.SIGINT)
    many.end()


@needs_busybox
def test_an_image_runs_in_an_allocation_without_an_engine(
    slurm: None, start: Start, tmp_path: Path
) -> None:
    (tmp_path / "boxed").mkdir()
    busybox_archive(tmp_path / "boxed")
    command = "cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv"
    (tmp_path / "boxed/agent.toml").write_text(
        f'image = "busybox.tar"\ncommand = ["sh", "-c", "{command}"]\n'
    )
    session = start("--mle-agent=boxed", write_toml(tmp_path, slots=1), TWO[0])
    assert session.end() == 0, session.text
    (record,) = session.records().values()
    assert record["conditions"]["sandbox"] == "rootless"
    assert record["ending"]["image"].startswith("sha256:")


def test_nodes_are_looked_at_and_not_the_host_where_srun_is(slurm: None, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest_mlebench", "hosts", "check"]
    write_toml(tmp_path, "-c2")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "pool: ok\n  Python 3" in done.stdout
    accounts = subprocess.run(
        ["scontrol", "show", "job", "--oneliner"], capture_output=True, text=True, check=True
    ).stdout
    assert accounts.count("JobName=mlebench-check") >= 2, "a look, and the doctor"
    write_toml(tmp_path, "-p nowhere")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pool: not ready\n  was not looked at, for Slurm gave no node within 30 s: " in (
        done.stdout
    )


def test_an_interrupt_takes_back_what_was_asked_for(
    slurm: None, agent: str, start: Start, tmp_path: Path
) -> None:
    session = start(agent, write_toml(tmp_path, "-w n1 --exclusive --time=2:00:00"), *TWO)
    session.wait_for_running(1)
    assert wait_until(lambda: len(jobs()) == 2, 60)  # one runs, one waits for the whole node
    session.process.send_signal(signal.SIGINT)
    assert session.end() == pytest.ExitCode.INTERRUPTED
    assert no_jobs_left(), what_is_left()
