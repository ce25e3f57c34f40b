"""The process sandbox: an agent runs on this host as processes of its own behind walls.

It sees a file system in which there is only what it needs, no processes but its own, and writes in
its workspace only. How much of that the kernel gives is tried out, said and recorded; SECURITY.md
has what is promised.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pytest_mlebench._problems import together
from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError, SandboxError, WallMissing
from pytest_mlebench.host.gpu_meter import gpu_samples
from pytest_mlebench.host.gpus import gpus_for
from pytest_mlebench.host.hardware import host_cpus
from pytest_mlebench.host.leases import Capacity, LeaseClaim, host_capacity, require
from pytest_mlebench.host.signals import termination_interrupts
from pytest_mlebench.limits import Limits
from pytest_mlebench.sandbox import Ending, Job, contract_environment, require_readable
from pytest_mlebench.sandbox.collect import NotCollected, collect_after, remove_tree
from pytest_mlebench.sandbox.hidden import hidden_folders
from pytest_mlebench.sandbox.process import landlock, own_disk
from pytest_mlebench.sandbox.process.order import Builder, Order, Surroundings
from pytest_mlebench.sandbox.process.own_disk import MIN_SECONDS
from pytest_mlebench.sandbox.process.supervised import Supervised
from pytest_mlebench.sandbox.process.view import view
from pytest_mlebench.sandbox.process.walls import BUILDERS, Strength, missing, strongest
from pytest_mlebench.sandbox.process.workspace import DataPlace, Workspace, give, lay, user_for
from pytest_mlebench.sandbox.validator import Validator

PORT = 5000
OWN_URL = f"http://localhost:{PORT}/validate"  # in a network of its own: the contract's
GRACE = 10.0  # seconds between asking an agent to end and ending it

_WITH_NETWORK = "use --mle-sandbox=docker or --mle-network=open"
_WAY_OUT = "use --mle-sandbox=docker, or see SECURITY.md for what each wall needs"

logger = logging.getLogger(__name__)


class ProcessSandbox:
    """Run agents as processes of this host."""

    name = "process"

    def __init__(
        self,
        *,
        grace_seconds: float = GRACE,
        require_walls: bool = False,
        builders: tuple[Builder, ...] = BUILDERS,
        cgroup: bool = True,
        own_disk_seconds: float = MIN_SECONDS,
    ) -> None:
        self._grace = grace_seconds
        self._require_walls = require_walls
        self._builders = builders
        self._cgroup = cgroup
        self._own_disk_seconds = own_disk_seconds  # which attempts have a disk of their own

    def preflight(self, agent: Agent, limits: Limits, network: str) -> tuple[str, ...]:
        """Raise ConfigError if the agent cannot run here; return lines for the header."""
        if not (agent.command or agent.function):
            raise ConfigError(
                f"agent {agent.name!r} has no command that could run outside its image: "
                "use --mle-sandbox=docker"
            )
        without = replace(limits, gpus=0)  # what is said of GPUs is said once
        together(
            lambda: _require_program(agent),
            lambda: self._require_network(agent, network),
            lambda: require(LeaseClaim.of(without), self.capacity(without)),
            lambda: require(LeaseClaim(gpus=limits.gpus), self.capacity(limits)),
        )
        return self._checked_walls(agent, limits, network)

    def _checked_walls(self, agent: Agent, limits: Limits, network: str) -> tuple[str, ...]:
        found = self._with_disk(self._strength(agent, network), limits)
        self._check(found, network, limits)
        return describe_walls(found, self._missing(found, network, limits))

    def _check(self, found: Strength, network: str, limits: Limits) -> None:
        """Refuse walls that are not complete if they must be."""
        if self._require_walls and (lacking := self._missing(found, network, limits)):
            raise WallMissing(
                f"--mle-require-walls: the {self.name} sandbox is not complete on this host "
                f"({lacking}): {_WAY_OUT}"
            )

    def missing_walls(self, agent: Agent, network: str = "open") -> tuple[str, ...]:
        """Return the names of the walls that an agent would not have on this host."""
        return tuple(missing(self._strength(agent, network).walls, network=network))

    def _with_disk(self, found: Strength, limits: Limits) -> Strength:
        """Add a disk of its own to the walls of an attempt that is to have one, and can."""
        if found.builder == "none" or not self._is_due(limits) or own_disk.find_problem():
            return found
        return replace(found, walls=(*found.walls, "disk"))

    def _is_due(self, limits: Limits) -> bool:
        return own_disk.is_due(limits, min_seconds=self._own_disk_seconds)

    def _missing(self, found: Strength, network: str, limits: Limits) -> str:
        """Return the walls that are not there in words."""
        lacking = missing(found.walls, network=network, disk=self._is_due(limits))
        words = [f"no {name}: {meaning}" for name, meaning in lacking.items()]
        if "disk" in lacking and found.builder != "none":
            words[-1] += f" ({own_disk.find_problem()})"
        return "; ".join(words)

    def _strength(self, agent: Agent, network: str) -> Strength:
        # a function is a copy of this process, which no other program can take inside
        builders = tuple(
            name for name in self._builders if name != "bubblewrap" or agent.function is None
        )
        try:
            return strongest(offline=network == "none", cgroup=self._cgroup, builders=builders)
        except SandboxError as problem:
            raise ConfigError(f"{problem}: {_WAY_OUT}") from None

    def _require_network(self, agent: Agent, network: str) -> None:
        self._refuse_lists(network)
        if network == "none" and "net" not in self._strength(agent, network).walls:
            raise ConfigError(
                f"the {self.name} sandbox cannot enforce --mle-network=none, "
                f"the kernel gives us no network namespace: {_WITH_NETWORK}"
            )

    def _refuse_lists(self, network: str) -> None:
        if network.startswith("allow:"):
            raise ConfigError(
                f"the {self.name} sandbox cannot enforce --mle-network={network}: {_WITH_NETWORK}"
            )

    def claim(self, limits: Limits) -> LeaseClaim:
        """Return what an attempt needs for itself; one that may use every CPU shares them."""
        whole = limits.cpus == host_cpus()
        return LeaseClaim(gpus=limits.gpus) if whole else LeaseClaim.of(limits)

    def capacity(self, limits: Limits) -> Capacity:
        """Return what this host has for attempts."""
        return host_capacity(gpus_for(limits))

    def make_room(self) -> None:
        """Do nothing: what an attempt started here ends with the process that started it."""

    def run(self, job: Job) -> Ending:
        """Run the agent to its end or to its limits, collect what it left, leave nothing behind."""
        self._refuse_lists(job.network)  # an agent of a fixture has not been seen before
        bound = job.limits.submission_bytes
        strength = self._with_disk(self._strength(job.agent, job.network), job.limits)
        self._check(strength, job.network, job.limits)
        with (
            termination_interrupts(),
            Validator(job.check, folder=job.folder, max_bytes=bound) as validator,
        ):
            url = OWN_URL if job.network == "none" else validator.listen_tcp()
            services = _serve(job)
            with self._workspace(job, url, strength) as workspace:
                order = self._order(job, workspace, strength, url, services)
                with Supervised(order, job.agent.function) as supervised:
                    serve = (validator.serve, *(service.serve for service in job.services))
                    for listener, start in zip(supervised.wait_for_start(), serve, strict=False):
                        start(listener)
                    with gpu_samples(job.gpus, job.stats):
                        ending = supervised.wait_for_end()
                collected = collect_after(ending.reason, job, workspace.home)
        return Ending(
            reason=ending.reason,
            exit_code=ending.exit_code,
            seconds=ending.seconds,
            format_checks=validator.calls,
            peak_memory_bytes=ending.peak_memory_bytes,
            cpu_seconds=ending.cpu_seconds,
            gpus=job.gpus,
            problem=collected.problem,
            walls=(*ending.walls, "disk") if workspace.disk else ending.walls,
            details={
                "builder": strength.builder,
                "disk_bytes": ending.disk_bytes,
                "log_dropped": ending.log_dropped,
                "notes": collected.notes,
                "oom_kills": ending.oom_kills,
                "survivors": ending.survivors,
                **({"lost": ending.problem} if ending.problem else {}),
            },
        )

    def _order(
        self,
        job: Job,
        workspace: Workspace,
        strength: Strength,
        url: str,
        services: dict[str, str],
    ) -> Order:
        builder = strength.builder
        user = None if builder == "none" else user_for(workspace.home)
        if user is not None:
            require_readable(job.data)
            give(workspace.home, user)
        found = self._surroundings(job, workspace, user, url, walled=builder != "none")
        return Order(
            command=self._command(job.agent),
            environment=found.environment | services,
            home=str(workspace.home),
            log=str(job.log.resolve()),
            stats=str(job.stats.resolve()),
            secrets=tuple(job.agent.secrets()),
            walls=builder,
            steps=found.steps,
            root=found.root,
            outside=found.outside,
            hidden=tuple(map(str, hidden_folders(job.hidden))),
            user=user,
            offline=job.network == "none",
            ports=(PORT, *(service.port for service in job.services)),
            cgroup=self._cgroup,
            disk=workspace.disk,
            required=strength.kinds if self._require_walls else (),
            grace_seconds=self._grace,
            limits=job.limits,
        )

    def _command(self, agent: Agent) -> tuple[str, ...]:
        return agent.command

    def _surroundings(
        self, job: Job, workspace: Workspace, user: int | None, url: str, *, walled: bool
    ) -> Surroundings:
        """Return what the agent finds: a view of this host, and an environment."""
        environment = _environment(job, workspace.home, url, walled=walled)
        steps = view(job, workspace, user=user, path=environment["PATH"])
        return Surroundings(environment, steps)

    @contextmanager
    def _workspace(self, job: Job, url: str, strength: Strength) -> Iterator[Workspace]:
        """Lay the workspace out and take it away at the end, whatever the end is."""
        disk = self._mount_disk(job) if "disk" in strength.walls else None
        try:
            workspace = self._lay(job, url, strength.builder)
            yield workspace if disk is None else replace(workspace, disk=disk.image)
        finally:
            try:
                if disk is not None:
                    disk.close()
                remove_tree(job.folder / "home")
            except (OSError, NotCollected) as problem:
                logger.warning("cannot remove the workspace in %s: %s", job.folder, problem)

    def _mount_disk(self, job: Job) -> own_disk.OwnDisk | None:
        """Mount the attempt's own disk; where that fails for once, its disk is watched instead."""
        try:
            return own_disk.OwnDisk.mount((job.folder / "home").resolve(), job.limits)
        except SandboxError as problem:
            if self._require_walls:
                raise
            logger.warning("%s", problem)
            return None

    def _lay(self, job: Job, url: str, builder: Builder) -> Workspace:
        data: DataPlace = "mounted"
        if builder == "none":  # a copy is safer where nothing keeps the agent from changing data
            data = "linked" if landlock.version() else "copied"
        return lay(job, url, data=data)


def describe_walls(found: Strength, lacking: str) -> tuple[str, ...]:
    """Return lines for the header: the walls that there are, and those that are missing."""
    lines = [f"walls: {' '.join(found.walls) or 'none'} ({found.builder})"]
    if lacking:
        lines.append(f"walls missing: {lacking}")
    if found.builder == "none":
        lines += [f"walls missing: {problem}" for problem in found.problems]
    return tuple(lines)


def visible_gpus(job: Job) -> dict[str, str]:
    """Return the variable that tells CUDA of the leased GPUs, or of none."""
    if job.gpus or job.limits.gpus == 0:
        return {"CUDA_VISIBLE_DEVICES": ",".join(job.gpus)}
    value = os.environ.get("CUDA_VISIBLE_DEVICES")
    return {} if value is None else {"CUDA_VISIBLE_DEVICES": value}


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
    program, *words = agent.command
    found = shutil.which(program, path=environment.get("PATH", _path()))
    if found is None and agent.folder is not None:
        found = shutil.which(str(agent.folder / program))
    if found is None:
        raise ConfigError(f"agent {agent.name!r}: no such command: {program}")
    script = words[0] if words else ""
    if script.endswith((".py", ".sh")) and agent.folder and not (agent.folder / script).is_file():
        raise ConfigError(f"agent {agent.name!r}: no such script in {agent.folder}: {script}")


def _environment(job: Job, home: Path, url: str, *, walled: bool) -> dict[str, str]:
    """Return all that the agent finds in its environment; of the host's there is only PATH."""
    environment = {
        "PATH": _path(),
        "HOME": str(home),
        # the same folder; the name of a socket in it has 107 bytes at most, see unix(7)
        "TMPDIR": "/tmp" if walled else str(home / "tmp"),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",  # so that the log can be followed
        **visible_gpus(job),
    }
    if os.geteuid() == 0 and not walled:  # root unpacks for other users, which it may not here
        environment["TAR_OPTIONS"] = "--no-same-owner"
    environment |= job.agent.environment()
    return environment | contract_environment(
        job, str(home), validate_url=url, agent_dir=str(home / "agent")
    )


def _path() -> str:
    """Return a search path on which ``python`` is the one that runs us."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
