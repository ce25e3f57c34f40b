"""The process sandbox: an agent runs on this host as a tree of processes in a workspace.

It is for agents that are not out to cheat. Where the kernel has Landlock, the agent can write in
its workspace only and cannot read what is hidden from it; a container is still the higher wall.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.host.gpus import gpus_for
from pytest_mlebench.host.leases import Capacity, Claim, host_capacity, require
from pytest_mlebench.host.signals import termination_interrupts
from pytest_mlebench.limits import Limits, host_cpus
from pytest_mlebench.sandbox import Ending, Job, contract_environment
from pytest_mlebench.sandbox.collect import Refused, collect, remove_tree
from pytest_mlebench.sandbox.process import landlock
from pytest_mlebench.sandbox.process.launch import Order
from pytest_mlebench.sandbox.process.supervised import Supervised, can_go_offline
from pytest_mlebench.sandbox.process.workspace import lay
from pytest_mlebench.sandbox.validator import Validator

PORT = 5000
OWN_URL = f"http://localhost:{PORT}/validate"  # in a network of its own: the contract's
GRACE = 10.0  # seconds between asking an agent to end and ending it

# Keys of the person at the machine, not of the agent: one of them can even ask Kaggle for a score.
_PRIVATE = (
    *(".ssh", ".gnupg", ".netrc", ".git-credentials", ".kaggle", ".config/kaggle", ".pypirc"),
    *(".aws", ".azure", ".config/gcloud", ".config/gh", ".kube", ".docker"),
    *(".huggingface", ".cache/huggingface/token", ".cache/huggingface/stored_tokens"),
)

logger = logging.getLogger(__name__)


class ProcessSandbox:
    """Run agents as processes of this host."""

    name = "process"

    def __init__(self, *, grace_seconds: float = GRACE) -> None:
        self._grace = grace_seconds

    def preflight(self, agent: Agent, limits: Limits, network: str) -> tuple[str, ...]:
        """Raise ConfigError if the agent cannot run here; return lines for the header."""
        if not (agent.command or agent.function):
            raise ConfigError(
                f"agent {agent.name!r} has no command that could run outside its image: "
                "use --mle-sandbox=docker"
            )
        _require_program(agent)
        _require_network(network)
        require(Claim.of(limits), self.capacity(limits))
        if landlock.version():
            return ()
        return (
            "process sandbox: the kernel offers no Landlock, a hostile agent could read "
            "the answers; use --mle-sandbox=docker",
        )

    def claim(self, limits: Limits) -> Claim:
        """Return what an attempt needs for itself; one that may use every CPU shares them."""
        whole = limits.cpus == host_cpus()
        return Claim(gpus=limits.gpus) if whole else Claim.of(limits)

    def capacity(self, limits: Limits) -> Capacity:
        """Return what this host has for attempts."""
        return host_capacity(gpus_for(limits))

    def make_room(self) -> None:
        """Do nothing: what an attempt started here ends with the process that started it."""

    def run(self, job: Job) -> Ending:
        """Run the agent to its end or to its limits, collect what it left, leave nothing behind."""
        bound = job.limits.submission_bytes
        with (
            termination_interrupts(),
            Validator(job.check, folder=job.folder, max_bytes=bound) as validator,
        ):
            url = OWN_URL if job.network == "none" else validator.listen_tcp()
            environment = _serve(job)
            with _workspace(job, url) as home:
                order = self._order(job, home, url, environment)
                with Supervised(order, job.agent.function) as supervised:
                    serve = (validator.serve, *(service.serve for service in job.services))
                    for listener, start in zip(supervised.wait_for_start(), serve, strict=False):
                        start(listener)
                    ending = supervised.wait_for_end()
                collected = collect(
                    home,
                    job.limits,
                    submission=job.submission,
                    artefacts=job.artefacts,
                    secrets=job.agent.secrets(),
                )
        return Ending(
            reason=ending.reason,
            exit_code=ending.exit_code,
            seconds=ending.seconds,
            format_checks=validator.calls,
            peak_memory_bytes=ending.peak_memory_bytes,
            cpu_seconds=ending.cpu_seconds,
            gpus=job.gpus,
            problem=collected.problem,
            details={
                "confined": landlock.version() > 0,
                "log_dropped": ending.log_dropped,
                "notes": collected.notes,
                "survivors": ending.survivors,
            },
        )

    def _order(self, job: Job, home: Path, url: str, services: dict[str, str]) -> Order:
        limits = job.limits
        return Order(
            command=job.agent.command,
            environment=_environment(job, home, url) | services,
            home=str(home),
            data=str(job.data.resolve()),
            log=str(job.log.resolve()),
            hidden=tuple(_hidden(job)),
            secrets=tuple(job.agent.secrets()),
            confine=landlock.version() > 0,
            offline=job.network == "none",
            ports=(PORT, *(service.port for service in job.services)),
            time_seconds=limits.time_seconds,
            grace_seconds=self._grace,
            memory_bytes=limits.memory_bytes,
            disk_bytes=limits.disk_bytes,
            cpus=limits.cpus,
            pids=limits.pids,
            open_files=limits.open_files,
            log_bytes=limits.log_bytes,
        )


def _serve(job: Job) -> dict[str, str]:
    """Return what leads the agent to its services; without a network of its own, start them."""
    variables: dict[str, str] = {}
    for service in job.services:
        port = service.port
        if job.network != "none":
            listener = socket.create_server(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            service.serve(listener)
        variables |= service.environment(f"http://127.0.0.1:{port}")
    return variables


def _require_program(agent: Agent) -> None:
    environment = agent.environment()  # raises ConfigError for a variable that is not set
    agent.model_keys()  # so does this
    if agent.function is not None:
        return
    program = agent.command[0]
    found = shutil.which(program, path=environment.get("PATH", _path()))
    if found is None and agent.folder is not None:
        found = shutil.which(str(agent.folder / program))
    if found is None:
        raise ConfigError(f"agent {agent.name!r}: no such command: {program}")


def _require_network(network: str) -> None:
    way_out = "use --mle-sandbox=docker or --mle-network=open"
    if network.startswith("allow:"):
        raise ConfigError(f"the process sandbox cannot enforce --mle-network={network}: {way_out}")
    if network == "none" and not can_go_offline():
        raise ConfigError(
            "the process sandbox cannot enforce --mle-network=none, "
            f"the kernel gives us no network namespace: {way_out}"
        )


def _environment(job: Job, home: Path, url: str) -> dict[str, str]:
    """Return all that the agent finds in its environment; of the host's there is only PATH."""
    environment = {
        "PATH": _path(),
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",  # so that the log can be followed
    }
    if job.gpus or job.limits.gpus == 0:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(job.gpus)
    elif "CUDA_VISIBLE_DEVICES" in os.environ:
        environment["CUDA_VISIBLE_DEVICES"] = os.environ["CUDA_VISIBLE_DEVICES"]
    if os.geteuid() == 0:  # root unpacks for other users by default, which it may not do here
        environment["TAR_OPTIONS"] = "--no-same-owner"
    environment |= job.agent.environment()
    return environment | contract_environment(
        job, str(home), validate_url=url, agent_dir=str(home / "agent")
    )


def _path() -> str:
    """Return a search path on which ``python`` is the one that runs us."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def _hidden(job: Job) -> list[str]:
    private = [Path.home() / name for name in _PRIVATE]
    return [str(path.resolve()) for path in (*job.hidden, *private)]


@contextmanager
def _workspace(job: Job, url: str) -> Iterator[Path]:
    """Lay the workspace out and take it away at the end, whatever the end is."""
    try:
        yield lay(job, url, link_data=landlock.version() > 0)
    finally:
        try:
            remove_tree(job.folder / "home")
        except (OSError, Refused) as problem:
            logger.warning("cannot remove the workspace in %s: %s", job.folder, problem)
