"""What is asked of the engine for one attempt: the container as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.sandbox import Job, contract_environment
from pytest_mlebench.sandbox.account import AGENT_DIR, HOME
from pytest_mlebench.sandbox.docker.engine import Engine
from pytest_mlebench.sandbox.docker.gpu_request import gpu_request
from pytest_mlebench.sandbox.docker.labels import PREFIX, this_process
from pytest_mlebench.sandbox.docker.prepared_image import HELPER, SOCKETS, Prepared
from pytest_mlebench.sandbox.mounts import extra_mounts

PORT = 5000
VALIDATE_URL = f"http://localhost:{PORT}/validate"


@dataclass(frozen=True)
class Wiring:
    """How the container is tied to our side; what differs between engines and networks."""

    mounts: Mapping[str, tuple[str, bool]]  # target -> (folder, file or volume; read-only)
    ports: Mapping[int, str] = field(default_factory=dict)  # relayed to a socket in SOCKETS
    network: str = "none"  # the engine's name for it
    environment: Mapping[str, str] = field(default_factory=dict)


def container_request(
    engine: Engine, job: Job, prepared: Prepared, wiring: Wiring
) -> dict[str, Any]:
    """Return the arguments of the engine's ``create_container`` for an attempt."""
    account = prepared.account
    relays = [f"{port}={SOCKETS}/{name}" for port, name in wiring.ports.items()]
    return {
        "image": prepared.name,
        "entrypoint": [HELPER],  # the image's own may want answers: the reference's does
        "command": [
            "run",
            str(job.limits.open_files),
            *relays,
            "--",
            *command(job.agent, prepared),
        ],
        "environment": _environment(job, prepared) | dict(wiring.environment),
        "user": f"{account.uid}:{account.gid}",
        "working_dir": AGENT_DIR,
        "hostname": "mlebench",
        "labels": labels(job),
        "healthcheck": {"test": ["NONE"]},
        "stop_signal": "SIGTERM",
        "runtime": job.agent.runtime,
        "host_config": engine.api.create_host_config(**_host_config(engine, job, wiring)),
    }


def command(agent: Agent, prepared: Prepared) -> tuple[str, ...]:
    """Return what starts the agent: its own command, else start.sh, else what the image starts."""
    if chosen := agent.command or prepared.start:
        return chosen
    raise ConfigError(
        f"agent {agent.name!r} has nothing to start: its image {prepared.image.name!r} has "
        f"neither {AGENT_DIR}/start.sh nor a CMD, and agent.toml no command="
    )


def _environment(job: Job, prepared: Prepared) -> dict[str, str]:
    contract = contract_environment(job, HOME, validate_url=VALIDATE_URL, agent_dir=AGENT_DIR)
    person = {"HOME": prepared.account.home, "USER": prepared.account.name}
    return person | job.agent.environment() | contract


def labels(job: Job) -> dict[str, str]:
    """Return who owns what a job has on the engine, and what for; nothing of the environment."""
    facts = {"competition": job.competition, "seed": str(job.seed), "agent": job.agent.name}
    facts |= {key: str(value) for key, value in job.labels.items()}
    return {PREFIX + key: value for key, value in facts.items()} | this_process().labels()


def _host_config(engine: Engine, job: Job, wiring: Wiring) -> dict[str, Any]:
    types, limits, agent = engine.sdk.types, job.limits, job.agent
    config: dict[str, Any] = {
        "mounts": [*_mounts(types, wiring), *_extra_mounts(types, job)],
        "network_mode": wiring.network,
        "nano_cpus": round(limits.cpus * 10**9),
        "mem_limit": limits.memory_bytes,
        "memswap_limit": limits.memory_bytes,  # the sum: no swap on top
        "pids_limit": limits.pids,
        "shm_size": limits.shm_bytes,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "init": True,
        "ipc_mode": "private",
        "log_config": {"Type": "none"},  # we read the output as it comes, and bound it
        "devices": list(agent.devices),
    }
    if agent.privileged:
        config |= {"privileged": True, "cap_drop": None, "security_opt": None}
    if job.gpus:
        config["device_requests"] = gpu_request(engine, job.gpus)
    if engine.facts.name == "podman" and engine.facts.rootless:
        config["userns_mode"] = "keep-id"  # else our own user is root inside
    return config


def _mounts(types: Any, wiring: Wiring) -> list[Any]:
    return [
        types.Mount(
            target, source, type="bind" if source.startswith("/") else "volume", read_only=read_only
        )
        for target, (source, read_only) in wiring.mounts.items()
    ]


def _extra_mounts(types: Any, job: Job) -> list[Any]:
    """Return the mounts that the agent's file asks for."""
    return [
        types.Mount(mount.target, str(mount.source), type="bind", read_only=mount.read_only)
        for mount in extra_mounts(job)
    ]
