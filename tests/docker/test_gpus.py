"""GPUs of containers: asked for by id, tried before anything runs."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from docker_jobs import HELPERS, SMALL, JobMaker
from fake_nvml import build, fake_gpus

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.sandbox.docker import DockerSandbox, Engine
from pytest_mlebench.sandbox.docker.labels import OWNED
from pytest_mlebench.sandbox.docker.request import Wiring, container_request

PREFLIGHT = """
import sys
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from docker_images import BUSYBOX
from docker_jobs import SMALL
from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.sandbox.docker import DockerSandbox

sandbox = DockerSandbox(cache=Path(sys.argv[2]), address=sys.argv[3])
agent = Agent(name="shell", image=BUSYBOX, command=("true",))
try:
    sandbox.preflight(agent, replace(SMALL, gpus=1), "none")
except ConfigError as problem:
    print(problem)
"""


def preflight(engine: Engine, folder: Path, gpus: str) -> str:
    environment = {"LD_LIBRARY_PATH": str(build(folder)), "FAKE_GPUS": gpus}
    here = str(HELPERS)
    result = subprocess.run(
        [sys.executable, "-c", PREFLIGHT, here, str(folder), engine.address],
        env=dict(os.environ) | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.strip()


def test_gpus_are_asked_for_by_their_ids(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    job = make_job(gpus=("GPU-1",))
    prepared = sandbox.prepare(job.agent)
    request = container_request(sandbox.engine, job, prepared, Wiring(mounts={}))
    (asked,) = request["host_config"]["DeviceRequests"]
    assert asked["DeviceIDs"] == ["GPU-1"]
    assert asked["Capabilities"] == [["gpu"]]
    assert not asked["Count"]


def test_a_host_without_gpus_is_refused_with_the_way_out(engine: Engine, tmp_path: Path) -> None:
    assert preflight(engine, tmp_path, "") == (
        "1 GPU with 24GB of memory or more wanted, but this host has none: "
        "use --mle-gpus=0 to run without"
    )


def test_an_engine_that_cannot_pass_gpus_on_is_refused_with_the_way_out(
    engine: Engine, tmp_path: Path
) -> None:
    if engine.facts.has_gpu_runtime:
        pytest.skip("this engine does know NVIDIA's runtime")
    said = preflight(engine, tmp_path, fake_gpus(25 * 10**9))
    assert said.startswith("the engine cannot give a container a GPU (could not select device")
    assert said.endswith("install nvidia-container-toolkit and restart it, or use --mle-gpus=0")
    created = engine.api.containers(all=True, filters={"label": OWNED, "status": "created"})
    assert not [one for one in created if one["Image"].startswith("mlebench/prepared")]


def test_gpus_of_another_machine_are_refused(
    sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = replace(sandbox.engine.facts, local=False, host="far")
    monkeypatch.setattr(sandbox.engine, "facts", elsewhere)
    assert sandbox.capacity(SMALL).place == "far"
    with pytest.raises(ConfigError) as problem:
        sandbox.capacity(replace(SMALL, gpus=1))
    assert str(problem.value) == (
        "GPUs of another machine (far) cannot be leased from here: "
        "run pytest there, or use --mle-gpus=0"
    )
