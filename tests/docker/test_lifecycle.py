"""Whatever happens to us, to the engine or to a container: nothing stays, nobody is blamed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from docker_engines import OwnEngine
from docker_images import BUSYBOX
from docker_jobs import HELPERS, JobMaker

from pytest_mlebench.errors import SandboxError
from pytest_mlebench.sandbox.docker import DockerSandbox, Engine, find_orphans, remove_orphans
from pytest_mlebench.sandbox.docker.labels import owner_of, this_process

SESSION = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from docker_jobs import JobMaker
from pytest_mlebench.sandbox.docker import DockerSandbox
make_job = JobMaker(Path(sys.argv[2]) / "runs", Path(sys.argv[3]))
DockerSandbox(cache=Path(sys.argv[2]) / "cache", grace_seconds=1).run(make_job("sleep 100"))
"""


def containers(engine: Engine, pid: int) -> list[dict[str, Any]]:
    """Return the containers that a process owns."""
    found = engine.api.containers(all=True, filters={"label": f"pytest-mlebench.pid={pid}"})
    return list(found)


def eventually(condition: Callable[[], Any], seconds: float = 30) -> Any:
    """Return the condition's first true value."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.1)
    return value


@pytest.fixture
def session(engine: Engine, tmp_path: Path, data: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own with a running agent."""
    arguments = [str(HELPERS), str(tmp_path / "session"), str(data)]
    process = subprocess.Popen(
        [sys.executable, "-c", SESSION, *arguments],
        env=os.environ | {"DOCKER_HOST": engine.address},
        stderr=subprocess.PIPE,
    )
    eventually(lambda: any(c["State"] == "running" for c in containers(engine, process.pid)))
    yield process
    process.kill()
    process.communicate()
    remove_orphans(engine)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_session_takes_its_container_with_it(
    engine: Engine, session: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    session.send_signal(number)
    _, errors = session.communicate(timeout=20)
    assert b"KeyboardInterrupt" in errors
    assert containers(engine, session.pid) == []


def test_what_a_killed_session_left_is_found_and_removed(
    engine: Engine,
    sandbox: DockerSandbox,
    make_job: JobMaker,
    session: subprocess.Popen[bytes],
) -> None:
    assert session.pid not in {orphan.pid for orphan in find_orphans(engine)}
    session.kill()
    session.wait()
    with ThreadPoolExecutor() as pool:
        mine = pool.submit(sandbox.run, make_job("sleep 4"))
        eventually(lambda: containers(engine, os.getpid()))
        left = [orphan for orphan in find_orphans(engine) if orphan.pid == session.pid]
        assert [orphan.describe() for orphan in left] == [
            f"container {left[0].name} of run tests (left by process {session.pid})"
        ]
        assert {orphan.id for orphan in remove_orphans(engine)} >= {left[0].id}
        assert mine.result().exit_code == 0
    assert containers(engine, session.pid) == []


def test_the_next_session_removes_what_a_killed_one_left(
    engine: Engine,
    sandbox: DockerSandbox,
    make_job: JobMaker,
    session: subprocess.Popen[bytes],
) -> None:
    session.kill()
    session.wait()
    job = make_job()
    lines = sandbox.preflight(job.agent, job.limits, "none")
    assert lines[-1].endswith(f"of run tests (left by process {session.pid})")
    assert lines[-1].startswith("removed container ")
    assert containers(engine, session.pid) == []


def test_others_containers_are_nobodys_orphans(engine: Engine) -> None:
    labels = this_process().labels()
    foreign = [
        labels | {"pytest-mlebench.host": "elsewhere/1", "pytest-mlebench.pid": "1"},
        {"pytest-mlebench.owner": "?"},
        {},
    ]
    ids = [engine.api.create_container(BUSYBOX, ["true"], labels=own)["Id"] for own in foreign]
    dead = labels | {"pytest-mlebench.started": "0"}
    ids.append(engine.api.create_container(BUSYBOX, ["true"], labels=dead)["Id"])
    try:
        assert [o.id for o in find_orphans(engine) if o.id in ids] == [ids[-1]]
    finally:
        for one in ids:
            engine.api.remove_container(one)


def test_networks_and_volumes_of_the_dead_are_removed_too(engine: Engine) -> None:
    labels = this_process().labels() | {"pytest-mlebench.started": "0"}
    network = engine.api.create_network("mlebench-test-orphan", labels=labels, internal=True)["Id"]
    engine.api.create_volume("mlebench-test-orphan", labels=labels)
    removed = {(orphan.kind, orphan.id) for orphan in remove_orphans(engine)}
    assert removed >= {("network", network), ("volume", "mlebench-test-orphan")}


def test_a_process_is_known_by_its_start_not_its_number() -> None:
    me = this_process()
    assert not me.is_dead()
    again = owner_of(me.labels())
    assert again == me
    assert owner_of({"maintainer": "me"}) is None
    assert owner_of(me.labels() | {"pytest-mlebench.started": "1"}).is_dead()  # type: ignore[union-attr]
    assert owner_of(me.labels() | {"pytest-mlebench.boot": "another"}).is_dead()  # type: ignore[union-attr]


@pytest.mark.parametrize("deed", ["kill", "stop", "remove_container"])
def test_a_container_that_is_ended_from_outside_is_not_the_agents_failure(
    engine: Engine, sandbox: DockerSandbox, make_job: JobMaker, deed: str
) -> None:
    job = make_job("echo id,target > $SUBMISSION_DIR/submission.csv; sleep 100")
    more = {"force": True} if deed == "remove_container" else {}

    def act() -> None:
        eventually((job.folder / "home/submission/submission.csv").exists)  # it is at work
        (one,) = containers(engine, os.getpid())
        getattr(engine.api, deed)(one["Id"], **more)

    thread = threading.Thread(target=act)
    thread.start()
    with pytest.raises(SandboxError, match=r"ended from outside \(signal \d+\)"):
        sandbox.run(job)
    thread.join()
    assert containers(engine, os.getpid()) == []
    assert job.submission.read_text() == "id,target\n"  # kept as evidence


def test_eight_attempts_at_once(sandbox: DockerSandbox, engine: Engine, make_job: JobMaker) -> None:
    jobs = [
        make_job(f"echo {n}; echo id,target > $SUBMISSION_DIR/submission.csv; sleep 1", cpus=0.2)
        for n in range(8)
    ]
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(sandbox.run, jobs))
    assert [outcome.reason for outcome in outcomes] == ["exited"] * 8
    assert [job.log.read_text() for job in jobs] == [f"{n}\n" for n in range(8)]
    assert containers(engine, os.getpid()) == []


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_an_engine_that_goes_away_is_not_the_agents_failure(
    own_engine: OwnEngine, make_job: JobMaker, tmp_path: Path, how: str
) -> None:
    address = own_engine("start")
    sandbox = DockerSandbox(cache=tmp_path, address=address, grace_seconds=1)
    job = make_job("echo started; sleep 100")

    def act() -> None:
        eventually(lambda: job.log.exists() and job.log.read_text())
        if how == "restart":
            own_engine("restart")
        else:
            own_engine.kill()

    thread = threading.Thread(target=act)
    thread.start()
    with pytest.raises(SandboxError, match=r"lost|ended from outside"):
        sandbox.run(job)
    thread.join()
    own_engine("start")
    assert sandbox.run(make_job("echo again")).exit_code == 0  # the retry finds it well again
    assert sandbox.engine.api.containers(all=True) == []
