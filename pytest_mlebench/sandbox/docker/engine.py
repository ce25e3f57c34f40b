"""The engine: how it is reached, what it is, what it has to give."""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

from pytest_mlebench._units import show_count, show_size, show_size_below
from pytest_mlebench.errors import ConfigError, ConfigErrors, HostTooSmall, SandboxError
from pytest_mlebench.limits import Limits
from pytest_mlebench.sandbox.docker.ssh_tunnel import Tunnel

EXTRA = "pip install 'pytest-mlebench[docker]'"
MINIMUM_API = (1, 41)  # Docker 20.10; one-shot statistics came with it
TIMEOUT = 60.0  # seconds for an answer of the engine that is not a stream

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class EngineFacts:
    """What an engine says about itself."""

    id: str
    name: str  # "docker" or "podman"
    version: str
    api: str
    address: str
    host: str
    local: bool  # shares our file system, so that folders and sockets can be bound in
    cpus: int
    memory_bytes: int
    architecture: str
    cgroup_version: str
    storage: str
    root: str
    rootless: bool
    remapped: bool  # users of containers are others on the host
    runtimes: tuple[str, ...]
    missing: tuple[str, ...]  # limits that this engine cannot enforce
    security: tuple[str, ...]  # what it puts around containers by itself: seccomp, apparmor …

    @property
    def has_gpu_runtime(self) -> bool:
        """Tell whether the engine knows NVIDIA's runtime."""
        return any("nvidia" in name for name in self.runtimes)

    def describe(self) -> str:
        """Return one line for people."""
        where = "" if self.local else f" on {self.host}"
        return f"{self.name} {self.version}{where} (cgroup v{self.cgroup_version}, {self.storage})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for a record."""
        return asdict(self)


class Engine:
    """A connection to an engine; its calls raise SandboxError where the engine is lost."""

    def __init__(self, address: str | None = None) -> None:
        self.sdk = load_sdk()
        self._connection = find_address(address)
        self.address = str(self._connection["base_url"])
        self._tunnel = Tunnel(self.address) if self.address.startswith("ssh:") else None
        if self._tunnel is not None:
            self._connection["base_url"] = self._tunnel.address
        self.api = self._client(TIMEOUT)
        # What runs for a day may be silent for a day: streams have no timeout of their own.
        self.streams = self._client(None)

    def _client(self, timeout: float | None) -> Any:  # the package's types cover half of it
        docker = self.sdk
        try:
            return docker.APIClient(version="auto", timeout=timeout, **self._connection)
        except (docker.errors.DockerException, OSError) as problem:
            raise self._unreachable(problem) from None

    def _unreachable(self, problem: Exception) -> ConfigError:
        said = self._tunnel.said() if self._tunnel is not None else ""
        return unreachable(self.address, said or str(problem))

    @cached_property
    def facts(self) -> EngineFacts:
        """Return what the engine says about itself, asked once."""
        try:
            return read_facts(self.address, self.api.version(), self.api.info())
        except (self.sdk.errors.DockerException, OSError) as problem:
            raise self._unreachable(problem) from None

    @contextmanager
    def asked(self, what: str) -> Iterator[None]:
        """Turn whatever a call of the engine raises into a SandboxError that says *what* failed."""
        from urllib3.exceptions import HTTPError  # late on purpose: comes with the docker package

        errors = self.sdk.errors
        try:
            yield
        except errors.NotFound as problem:
            raise SandboxError(f"{what}: the container vanished ({_said(problem)})") from problem
        except errors.APIError as problem:
            raise SandboxError(f"{what}: the engine refused: {_said(problem)}") from problem
        except (errors.DockerException, HTTPError, OSError) as problem:
            raise SandboxError(f"{what}: the engine was lost: {problem}") from problem

    def answers(self) -> bool:
        """Tell whether the engine is there now."""
        try:
            return bool(self.api.ping())
        except (self.sdk.errors.DockerException, OSError):
            return False

    def wait_until_it_answers(self, seconds: float) -> None:
        """Give an engine that is being restarted a moment to come back."""
        deadline = time.monotonic() + seconds
        while not self.answers():
            if time.monotonic() > deadline:
                raise SandboxError(f"the engine at {self.address} does not answer any more")
            time.sleep(0.5)

    def close(self) -> None:
        """Close the connections."""
        self.api.close()
        self.streams.close()
        if self._tunnel is not None:
            self._tunnel.close()


def load_sdk() -> ModuleType:
    """Return the docker package, or say how to get it."""
    try:
        import docker  # late on purpose: heavy, and an extra
        import docker.errors
        import docker.types
    except ImportError:
        raise ConfigError(f"the docker sandbox needs the package docker: {EXTRA}") from None
    return docker


def find_address(address: str | None = None) -> dict[str, Any]:
    """Return how to connect: to *address*, else DOCKER_HOST, else the current context's engine."""
    from docker.context import ContextAPI  # late on purpose: heavy
    from docker.utils import kwargs_from_env

    settings: dict[str, Any] = {**kwargs_from_env()}
    if chosen := address or os.environ.get("DOCKER_HOST"):
        return settings | {"base_url": chosen}
    try:
        context = ContextAPI.get_current_context()
    except Exception as problem:  # that is what the package raises for a file that it cannot read
        raise ConfigError(f"the current docker context cannot be read: {problem}") from None
    if context is None:
        raise ConfigError(
            "the current docker context does not exist: docker context ls shows which"
        )
    if context.TLSConfig is not None:
        settings["tls"] = context.TLSConfig
    return settings | {"base_url": context.Host or "unix:///var/run/docker.sock"}


def unreachable(address: str, problem: str) -> ConfigError:
    """Return the error for an engine that does not answer, with the way out."""
    reason = problem.removeprefix("Error while fetching server API version: ")
    if "Permission denied" in reason:
        way_out = "add yourself to the group docker, or use a rootless engine"
    else:
        way_out = "start it, or point DOCKER_HOST at one that runs"
    return ConfigError(
        f"no container engine answers at {address} ({reason[:200]}): {way_out}, "
        "or use --mle-sandbox=process"
    )


def check_limits(limits: Limits, facts: EngineFacts) -> None:
    """Refuse limits that the engine's host cannot give, naming both numbers and the option."""
    lacks = []
    if limits.cpus > facts.cpus:
        lacks.append(
            f"the limit of {show_count(limits.cpus)} CPUs is more than the {facts.cpus} "
            f"that {facts.host} has: use --mle-cpus={facts.cpus} or fewer"
        )
    if limits.memory_bytes > facts.memory_bytes:
        lacks.append(
            f"the memory limit of {show_size(limits.memory_bytes)} is more than the "
            f"{show_size(facts.memory_bytes)} that {facts.host} has: "
            f"use --mle-memory={show_size_below(facts.memory_bytes)} or less"
        )
    if lacks:
        raise ConfigErrors(map(HostTooSmall, lacks))


def is_too_old(facts: EngineFacts) -> bool:
    """Tell whether the engine lacks something that every attempt needs."""
    return tuple(map(int, re.findall(r"\d+", facts.api))) < MINIMUM_API


def describe_engine(address: str | None = None) -> dict[str, Any]:
    """Return the facts about the engine and its shortcomings, for ``pytest-mlebench doctor``."""
    engine = Engine(address)
    try:
        facts = engine.facts
        problems = [f"the engine cannot limit: {name}" for name in facts.missing]
        if is_too_old(facts):
            problems.append(
                f"the engine is too old: API {facts.api}, 1.41 (Docker 20.10) is needed"
            )
        if not facts.has_gpu_runtime:
            problems.append("no GPU runtime: install nvidia-container-toolkit, or use --mle-gpus=0")
        return facts.to_dict() | {"problems": problems}
    finally:
        engine.close()


def _said(problem: Any) -> str:
    return str(problem.explanation or problem).strip()


def read_facts(address: str, version: dict[str, Any], info: dict[str, Any]) -> EngineFacts:
    """Return the facts in an engine's answers to ``/version`` and ``/info``."""
    names = [str(part.get("Name", "")) for part in version.get("Components") or ()]
    security = [str(option) for option in info.get("SecurityOptions") or ()]
    host = str(info.get("Name", "?"))
    remapped = any("name=userns" in option for option in security)
    enforced = {
        "memory": info.get("MemoryLimit", True),
        "swap": info.get("SwapLimit", True),
        "CPU": info.get("CpuCfsQuota", info.get("CPUCfsQuota", True)),
        "pids": info.get("PidsLimit", True),
    }
    return EngineFacts(
        id=str(info.get("ID") or host),
        name="podman" if any("Podman" in name for name in names) else "docker",
        version=str(version.get("Version", "?")),
        api=str(version.get("ApiVersion", "?")),
        address=address,
        host=host,
        # A socket may lead to another machine, or to a virtual one (Docker Desktop): what is at
        # the other end calls itself by another name then.
        local=address.startswith(("unix:", "http+unix:"))
        and host == socket.gethostname()
        and not remapped,
        cpus=int(info.get("NCPU", 0)),
        memory_bytes=int(info.get("MemTotal", 0)),
        architecture=str(info.get("Architecture", "?")),
        cgroup_version=str(info.get("CgroupVersion", "1")),
        storage=str(info.get("Driver", "?")),
        root=str(info.get("DockerRootDir", "?")),
        rootless=any("rootless" in option for option in security),
        remapped=remapped,
        runtimes=tuple(sorted(info.get("Runtimes") or ())),
        missing=tuple(name for name, works in enforced.items() if not works),
        security=tuple(_security_names(security)),
    )


def _security_names(options: list[str]) -> Iterator[str]:
    """Yield the names in options such as ``name=seccomp,profile=default``."""
    for option in options:
        pairs = dict(pair.partition("=")[::2] for pair in option.split(","))
        if pairs.get("profile") != "unconfined":
            yield pairs.get("name", option)
