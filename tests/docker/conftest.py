"""Fixtures on a real engine: the one that DOCKER_HOST names."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker_engines import OwnEngine
from docker_images import ensure_busybox, ensure_images
from docker_jobs import HOST, JobMaker, take_host_name

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.host import leases, process_identity
from pytest_mlebench.sandbox.docker import DockerSandbox, Engine

REQUIRED = "MLEBENCH_REQUIRE_ENGINE"  # CI sets it: a test that skips there is a failure


@pytest.fixture(autouse=True)
def own_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host name of our own, so that no other worker takes away what we left on purpose."""
    monkeypatch.setenv(HOST, f"tests-{os.getpid()}")
    monkeypatch.setattr(
        process_identity, "host_name", process_identity.host_name
    )  # to be put back in the end
    monkeypatch.setattr(leases, "host_name", leases.host_name)
    take_host_name()


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """A connection to a real engine that has the test images."""
    try:
        engine = Engine()
        facts = engine.facts
    except ConfigError as problem:
        if os.environ.get(REQUIRED):
            pytest.fail(f"{REQUIRED} is set, but: {problem}")
        pytest.skip(f'{problem} (for the tests: eval "$(scripts/engine start)")')
    if not facts.local:
        verdict = pytest.fail if os.environ.get(REQUIRED) else pytest.skip
        verdict(f"the engine runs on another machine: {facts.host}")
    ensure_images(engine.api)
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def sandbox(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> DockerSandbox:
    """A sandbox whose agents get two seconds to end."""
    cache = tmp_path_factory.mktemp("cache")
    return DockerSandbox(cache=cache, address=engine.address, grace_seconds=2)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The public folder of a dataset, with the answers beside it."""
    prepared = tmp_path / "store" / "demo" / "prepared"
    for name in ("public", "private"):
        (prepared / name).mkdir(parents=True)
    (prepared / "public" / "description.md").write_text("# Demo\n")
    (prepared / "public" / "sample_submission.csv").write_text("id,target\n1,0\n")
    (prepared / "private" / "answers.csv").write_text("id,target\n1,1\n")
    return prepared / "public"


@pytest.fixture
def make_job(tmp_path: Path, data: Path) -> JobMaker:
    """A factory of jobs."""
    return JobMaker(tmp_path / "runs", data)


@pytest.fixture(scope="module")
def own_engine(engine: Engine) -> Iterator[OwnEngine]:
    """An engine that no other test needs."""
    if os.getuid() != 0:
        pytest.skip("only root can start another engine")
    own = OwnEngine(socket.gethostname())
    connection = Engine(own("start"))
    ensure_busybox(connection.api)
    yield own
    own("wipe")
