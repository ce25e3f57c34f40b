"""The engine: what it is, what it cannot give, and what is asked of it."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from docker_images import BUSYBOX
from docker_jobs import SMALL, JobMaker

from pytest_mlebench._units import show_size
from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError, SandboxError, UnknownName
from pytest_mlebench.sandbox.docker import DockerSandbox, Engine, describe_engine
from pytest_mlebench.sandbox.docker.engine import check_limits
from pytest_mlebench.sandbox.docker.request import Wiring, container_request

AGENT = Agent(name="shell", image=BUSYBOX, command=("true",))


def test_more_cpus_than_the_host_has_are_refused(sandbox: DockerSandbox) -> None:
    facts = sandbox.engine.facts
    with pytest.raises(ConfigError) as caught:
        sandbox.preflight(AGENT, replace(SMALL, cpus=36_000), "none")
    assert str(caught.value) == (
        f"the limit of 36000 CPUs is more than the {facts.cpus} that {facts.host} has: "
        f"use --mle-cpus={facts.cpus} or fewer"
    )


def test_more_memory_than_the_host_has_is_refused(sandbox: DockerSandbox) -> None:
    facts = sandbox.engine.facts
    with pytest.raises(ConfigError) as caught:
        sandbox.preflight(AGENT, replace(SMALL, memory_bytes=10**15), "none")
    text = str(caught.value)
    assert text.startswith(
        f"the memory limit of 1000TB is more than the {show_size(facts.memory_bytes)} "
        f"that {facts.host} has: use --mle-memory="
    )
    # what the message recommends is not refused again
    check_limits(
        replace(SMALL, memory_bytes=facts.memory_bytes // 10**9 * 10**9, cpus=facts.cpus), facts
    )


def test_a_runtime_that_is_not_installed_is_refused(sandbox: DockerSandbox) -> None:
    with pytest.raises(UnknownName, match="unknown runtime of agent 'shell': 'runk', did you mean"):
        sandbox.preflight(replace(AGENT, runtime="runk"), SMALL, "none")


def test_a_network_that_it_cannot_make_is_refused(sandbox: DockerSandbox) -> None:
    with pytest.raises(ConfigError, match="none, open and allow:HOST, given: bridge"):
        sandbox.preflight(AGENT, SMALL, "bridge")


def test_a_missing_variable_is_told_before_anything_runs(sandbox: DockerSandbox) -> None:
    agent = replace(AGENT, env={"KEY": "${MLEBENCH_NO_SUCH_VARIABLE}"})
    with pytest.raises(ConfigError, match="needs the environment variable MLEBENCH_NO_SUCH"):
        sandbox.preflight(agent, SMALL, "none")


def test_an_engine_that_is_not_there_is_named_with_the_way_out(tmp_path: Path) -> None:
    sandbox = DockerSandbox(cache=tmp_path, address=f"unix://{tmp_path}/no.sock")
    with pytest.raises(ConfigError) as caught:
        sandbox.preflight(AGENT, SMALL, "none")
    text = str(caught.value)
    assert text.startswith(f"no container engine answers at unix://{tmp_path}/no.sock (")
    assert text.endswith(
        "start it, or point DOCKER_HOST at one that runs, or use --mle-sandbox=process"
    )


def test_the_address_comes_from_the_environment(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/elsewhere.sock")
    with pytest.raises(ConfigError, match=r"elsewhere\.sock"):
        Engine()
    monkeypatch.delenv("DOCKER_HOST")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    meta = tmp_path / "contexts" / "meta" / hashlib.sha256(b"mine").hexdigest()
    meta.mkdir(parents=True)
    (tmp_path / "config.json").write_text('{"currentContext": "mine"}')
    with pytest.raises(ConfigError, match="the current docker context does not exist"):
        Engine()
    (meta / "meta.json").write_text("{")
    with pytest.raises(ConfigError, match="the current docker context cannot be read: "):
        Engine()
    (meta / "meta.json").write_text(
        '{"Name": "mine", "Metadata": {}, '
        f'"Endpoints": {{"docker": {{"Host": "{engine.address}", "SkipTLSVerify": false}}}}}}'
    )
    assert Engine().address == engine.address


def test_without_the_docker_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docker", None)
    with pytest.raises(
        ConfigError,
        match=r"the docker sandbox needs the package docker: "
        r"pip install 'pytest-mlebench\[docker\]'",
    ):
        Engine()


def test_the_engine_describes_itself(engine: Engine) -> None:
    facts = describe_engine(engine.address)
    assert facts["name"] == "docker"
    assert facts["local"] is True
    assert facts["cpus"] >= 1
    assert facts["memory_bytes"] > 10**8
    assert "runc" in facts["runtimes"]
    if not any("nvidia" in name for name in facts["runtimes"]):
        assert (
            "no GPU runtime: install nvidia-container-toolkit, or use --mle-gpus=0"
            in facts["problems"]
        )


def request(sandbox: DockerSandbox, job: Any) -> dict[str, Any]:
    """Return what would be asked of the engine."""
    prepared = sandbox.prepare(job.agent)
    return container_request(sandbox.engine, job, prepared, Wiring(mounts={}))


def test_gpus_are_asked_for_by_their_ids(sandbox: DockerSandbox, make_job: JobMaker) -> None:
    job = make_job(gpus=("GPU-aaaa", "GPU-bbbb"))
    asked = request(sandbox, job)["host_config"]["DeviceRequests"]
    assert asked == [
        {
            "Driver": "",
            "Count": 0,
            "DeviceIDs": ["GPU-aaaa", "GPU-bbbb"],
            "Capabilities": [["gpu"]],
            "Options": {},
        }
    ]
    assert "DeviceRequests" not in request(sandbox, make_job())["host_config"]


def test_a_gpu_that_the_engine_cannot_give_is_our_failure(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    if sandbox.engine.facts.has_gpu_runtime:
        pytest.skip("this engine has GPUs to give")
    job = make_job(gpus=("GPU-aaaa",))
    job = replace(job, limits=replace(job.limits, gpus=1))
    with pytest.raises(
        SandboxError, match=r"cannot start the container: the engine refused: .*gpu"
    ):
        sandbox.run(job)


def test_special_wishes_reach_the_engine_only_when_they_are_told(
    sandbox: DockerSandbox, make_job: JobMaker
) -> None:
    plain = request(sandbox, make_job())
    assert plain["runtime"] is None
    assert not plain["host_config"].get("Devices")
    assert plain["host_config"]["CapDrop"] == ["ALL"]
    assert "Privileged" not in plain["host_config"]
    wishes = replace(AGENT, runtime="runc", devices=("/dev/fuse",), privileged=True)
    special = request(sandbox, make_job(agent=wishes))
    assert special["runtime"] == "runc"
    assert special["host_config"]["Devices"][0]["PathOnHost"] == "/dev/fuse"
    assert special["host_config"]["Privileged"] is True


def test_labels_tell_the_owner_and_no_secret(
    sandbox: DockerSandbox, make_job: JobMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "sk-very-secret")
    labels = request(sandbox, make_job(env={"KEY": "${API_KEY}"}))["labels"]
    assert labels["pytest-mlebench.run"] == "tests"
    assert labels["pytest-mlebench.competition"] == "demo"
    assert labels["pytest-mlebench.pid"].isdecimal()
    assert "sk-very-secret" not in str(labels)
