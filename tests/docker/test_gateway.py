"""Agents in containers reach their models in every network, and never the real key."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from docker_images import PYTHON, ensure_clients
from docker_jobs import HELPERS, SMALL, JobMaker
from gateway_attempt import REFERENCE, VARIABLE, agent_of
from model_agents import CALLER, HEARD, SEEKER, SPENDER
from model_server import KEY, ModelServer
from sandbox_job import wait_until

from pytest_mlebench.agent import Agent
from pytest_mlebench.attempts.keeping import HeldHere
from pytest_mlebench.budget import Budget
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.gateway.gateway import Gateway, open_gateway
from pytest_mlebench.layout import AttemptFolder
from pytest_mlebench.sandbox import Ending, Job
from pytest_mlebench.sandbox.docker import DockerSandbox, Engine
from pytest_mlebench.sandbox.docker.labels import PREFIX

NETWORKS = ["none", "open", "allow:models.invalid"]

Run = Callable[..., tuple[Job, Ending, Gateway]]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A local upstream, whose real key is in our own environment."""
    monkeypatch.setenv(VARIABLE, KEY)
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="session")
def clients(engine: Engine) -> str:
    """An image with the real clients."""
    return ensure_clients(engine.api)


@pytest.fixture
def run(sandbox: DockerSandbox, make_job: JobMaker, server: ModelServer) -> Run:
    """Run a Python program in a container, with a gateway to the local upstream."""

    def run_it(
        *command: str, image: str, network: str = "none", budget: Budget | None = None
    ) -> tuple[Job, Ending, Gateway]:
        agent = replace(
            agent_of(server, budget=budget), image=image, command=("python3", "-c", *command)
        )
        job = make_job(agent=agent, network=network, memory_bytes=10**9, time_seconds=300)
        with open_gateway(agent, job.folder, run_account=HeldHere().run_account) as gateway:
            ending = sandbox.run(replace(job, services=(gateway,)))
        return job, ending, gateway

    return run_it


@pytest.mark.parametrize("network", NETWORKS)
def test_real_clients_find_their_models(run: Run, clients: str, network: str) -> None:
    job, ending, gateway = run(CALLER, image=clients, network=network)
    assert ending.exit_code == 0, job.log.read_text()
    assert json.loads((job.artefacts / "logs/heard.json").read_text()) == HEARD
    summary = gateway.summary()
    assert (summary.calls, summary.errors, summary.unmetered) == (25, 0, 0)
    assert summary.usage.total_tokens == 25 * 120


def test_an_exhausted_budget_ends_the_calls_and_not_the_attempt(run: Run, clients: str) -> None:
    job, ending, gateway = run(SPENDER, image=clients, budget=Budget(tokens=1_000))
    assert ending.exit_code == 0
    assert "its 1000 tokens are used up" in job.log.read_text()
    assert job.submission.read_text() == "id,label,target\n1,9,9\n"
    assert gateway.summary().exhausted == ("tokens",)


STREAMS = """
import http.client, os, threading, urllib.parse
url = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
body = b'{"model": "gpt-5", "stream": true}'
together, heard = threading.Barrier(100), []
def stream():
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=300)
    together.wait()
    connection.request("POST", url.path + "/chat/completions", body, headers)
    heard.append(connection.getresponse().read().endswith(b"data: [DONE]\\n\\n"))
threads = [threading.Thread(target=stream) for _ in range(100)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(heard.count(True))
"""


def test_a_hundred_streams_at_once_arrive_whole(run: Run, server: ModelServer) -> None:
    server.pieces, server.pause = 21, 0.05
    job, _, gateway = run(STREAMS, image=PYTHON)
    assert job.log.read_text() == "100\n"
    assert (gateway.summary().calls, gateway.summary().unmetered) == (100, 0)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_hostile_agent_does_not_find_the_real_key(run: Run, network: str) -> None:
    job, _, _ = run(SEEKER, KEY[:9], KEY[9:], image=PYTHON, network=network)
    lines = job.log.read_text().splitlines()
    assert lines[-1] == "found []", lines
    assert int(lines[-2].split()[1]) > 100  # it has looked
    written = [path.read_bytes() for path in job.folder.rglob("*") if path.is_file()]
    assert not [text for text in written if KEY.encode() in text]


def test_the_hostile_agent_does_find_what_there_is_to_be_found(run: Run) -> None:
    job, _, _ = run(SEEKER, "id,tar", "get\n1,0", image=PYTHON)
    assert "/home/data/sample_submission.csv" in job.log.read_text().splitlines()[-1]


SESSION = """
import sys
from dataclasses import replace
from pathlib import Path
import docker_jobs
from docker_images import PYTHON
from gateway_attempt import agent_of
from model_server import ModelServer
from pytest_mlebench.attempts.keeping import HeldHere
from pytest_mlebench.gateway.gateway import open_gateway
from pytest_mlebench.sandbox.docker import DockerSandbox
folder, data, url, script = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
server = ModelServer()
server.url = url
agent = replace(agent_of(server), image=PYTHON, command=("python3", "-c", script))
job = docker_jobs.JobMaker(folder, data)(agent=agent, time_seconds=600)
with open_gateway(agent, job.folder, run_account=HeldHere().run_account) as gateway:
    DockerSandbox(cache=folder / "cache").run(replace(job, services=(gateway,)))
"""

STALLING = STREAMS.replace("gpt-5", "stall-midway").replace("100", "1")


def test_a_container_does_not_tell_the_key_and_a_killed_session_takes_its_gateway_along(
    engine: Engine,
    sandbox: DockerSandbox,
    server: ModelServer,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = tmp_path / "runs"
    session = subprocess.Popen(
        [sys.executable, "-c", SESSION, runs, data, server.url, STALLING],
        env=os.environ | {"PYTHONPATH": str(HELPERS), "DOCKER_HOST": engine.address},
    )
    try:
        assert server.begun.acquire(timeout=120)  # in the middle of a stream
        ours = {"label": f"{PREFIX}pid={session.pid}"}
        (container,) = engine.api.containers(filters=ours)
        inspected: dict[str, Any] = engine.api.inspect_container(container["Id"])
        assert "OPENAI_BASE_URL=http://127.0.0.1:5001/openai/v1" in inspected["Config"]["Env"]
        assert KEY not in json.dumps(inspected)
        for pid in _processes(engine, container["Id"]):
            assert KEY.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
            assert KEY.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    finally:
        os.kill(session.pid, signal.SIGKILL)
        session.wait()
    assert server.gone.wait(60)  # the upstream notices at once
    (left,) = {path.parent for path in runs.rglob("*") if path.is_socket()}
    monkeypatch.chdir(left)  # a path to a socket must be short
    for path in left.iterdir():  # names in a folder, at which nobody listens
        with socket.socket(socket.AF_UNIX) as connection, pytest.raises(ConnectionRefusedError):
            connection.connect(path.name)
    attempt = AttemptFolder(left.parent)
    assert attempt.sockets == left  # which the next session of the run removes, or `clean`
    sandbox.preflight(Agent(name="next", image=PYTHON, command=("true",)), SMALL, "none")
    assert wait_until(lambda: not engine.api.containers(all=True, filters=ours))


def _processes(engine: Engine, container: str) -> list[str]:
    listing = engine.api.top(container)
    return [row[listing["Titles"].index("PID")] for row in listing["Processes"]]


def test_models_need_an_engine_of_this_machine(
    sandbox: DockerSandbox, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = replace(sandbox.engine.facts, local=False, host="far")
    monkeypatch.setattr(sandbox.engine, "facts", elsewhere)
    agent = replace(agent_of(server), image=PYTHON)
    with pytest.raises(ConfigError) as problem:
        sandbox.preflight(agent, SMALL, "none")
    assert str(problem.value) == (
        "the models of agent 'tester' need an engine on this machine, and this one runs on far: "
        "run pytest there"
    )


def test_a_key_that_is_not_exported_is_said_before_anything_runs(
    sandbox: DockerSandbox, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    agent = replace(agent_of(server), image=PYTHON, command=("true",))
    with pytest.raises(ConfigError, match=VARIABLE) as problem:
        sandbox.preflight(agent, SMALL, "none")
    assert f"models.openai has key = '{REFERENCE}'" in str(problem.value)
