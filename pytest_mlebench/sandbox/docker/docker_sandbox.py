"""The sandbox itself: what it refuses before anything runs, and what it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from pytest_mlebench._problems import together
from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import (
    ConfigError,
    ConfigErrors,
    HostTooSmall,
    SandboxError,
    UnknownName,
)
from pytest_mlebench.host.gpus import gpus_for
from pytest_mlebench.host.leases import Capacity, LeaseClaim
from pytest_mlebench.host.signals import termination_interrupts
from pytest_mlebench.limits import Limits
from pytest_mlebench.sandbox import Ending, ImageIdentity, Job
from pytest_mlebench.sandbox.docker.cleanup import remove_orphans
from pytest_mlebench.sandbox.docker.container import Container
from pytest_mlebench.sandbox.docker.container_walls import require_walls, walls_of
from pytest_mlebench.sandbox.docker.engine import Engine, EngineFacts, check_limits, is_too_old
from pytest_mlebench.sandbox.docker.execution import Execution
from pytest_mlebench.sandbox.docker.gpu_request import require_gpus
from pytest_mlebench.sandbox.docker.home import Home
from pytest_mlebench.sandbox.docker.images import Bring, Image, Images, refuse_archive
from pytest_mlebench.sandbox.docker.network import check_network
from pytest_mlebench.sandbox.docker.prepared_image import Prepared, Preparer
from pytest_mlebench.sandbox.docker.remote_home import RemoteHome
from pytest_mlebench.sandbox.docker.request import command
from pytest_mlebench.sandbox.docker.volumes import DataVolumes

GRACE = 30.0  # seconds between the request to end and the end

RESTART_SECONDS = 600.0  # for an engine that is being restarted, or upgraded


class DockerSandbox:
    """Runs agents in containers of the engine that DOCKER_HOST or the current context names."""

    name = "docker"

    def __init__(
        self,
        *,
        cache: Path,
        hidden: Sequence[Path] = (),  # never part of an image or of an agent's folder
        address: str | None = None,
        grace_seconds: float = GRACE,
        require_walls: bool = False,
    ) -> None:
        self._cache = cache
        self.hidden = tuple(hidden)
        self._address = address
        self._grace = grace_seconds
        self._require_walls = require_walls
        self._agents: dict[tuple[str | None, Path | None], Image] = {}
        self._expected: tuple[ImageIdentity, Bring] | None = None
        self.left: list[Container] = []  # could not be removed, for their engine was gone

    @cached_property
    def engine(self) -> Engine:
        """Return the connection, made when it is first needed."""
        return Engine(self._address)

    @cached_property
    def images(self) -> Images:
        """Return the engine's images."""
        return Images(self.engine, self._cache, self.hidden)

    @cached_property
    def _volumes(self) -> DataVolumes:
        return DataVolumes(self.engine, self.images, self._cache)

    @cached_property
    def _preparer(self) -> Preparer:
        return Preparer(self.engine, self.images)

    def preflight(self, agent: Agent, limits: Limits, network: str) -> tuple[str, ...]:
        """Raise ConfigError if the agent cannot run here; return lines for the header."""
        refuse_archive(agent)
        facts = self.engine.facts
        if is_too_old(facts):
            raise ConfigError(
                f"the engine at {facts.address} is too old: its API is {facts.api}, 1.41 is needed "
                "(Docker 20.10, Podman 4)"
            )
        try:
            self._refuse(agent, limits, network)
        except ConfigError as problem:
            self._add_image(problem, agent)
        gpus = self.capacity(limits).gpus[:1]
        prepared = self.prepare(agent)
        command(agent, prepared)
        if gpus:
            require_gpus(self.engine, prepared, gpus)
        lines = [
            f"engine: {facts.describe()}",
            f"image: {prepared.image.name} ({prepared.image.digest})",
            f"walls: {' '.join(walls_of(facts, agent, network)) or 'none'} (container)",
        ]
        if facts.missing:
            lines.append(f"not enforced by this engine: {', '.join(facts.missing)}")
        lines += [f"removed {orphan.describe()}" for orphan in remove_orphans(self.engine)]
        return tuple(lines)

    def _add_image(self, problem: ConfigError, agent: Agent) -> NoReturn:
        """Raise a problem with what is wrong with the image, which is not pulled for that."""
        try:
            self.images.require(agent)
        except ConfigError as another:
            raise ConfigErrors([problem, another]) from None
        raise problem

    def _refuse(self, agent: Agent, limits: Limits, network: str) -> None:
        """Raise everything that is wrong at once, as far as no image is needed to tell."""
        facts = self.engine.facts
        together(
            lambda: require_walls(facts, agent, network) if self._require_walls else None,
            lambda: check_limits(limits, facts),
            lambda: self._require_gpu_engine(limits),
            lambda: self.capacity(limits),
            lambda: check_network(network),
            lambda: _require_nearness(facts, agent, network),
            lambda: _require_runtime(facts, agent),
            agent.environment,
            agent.model_keys,
        )

    def _require_gpu_engine(self, limits: Limits) -> None:
        if limits.gpus and self.engine.facts.name == "podman":
            # It takes the request and starts the container without.
            raise HostTooSmall(
                f"Podman's Docker interface gives no GPUs by their ids, asked for: {limits.gpus}: "
                "use a Docker engine, or --mle-gpus=0"
            )

    def image_digest(self, agent: Agent) -> str:
        """Return what identifies the content of an agent's image."""
        return self.prepare(agent).image.digest

    def prepare(self, agent: Agent) -> Prepared:
        """Return the agent's image, ready for attempts."""
        key = (agent.image, agent.build)
        if key not in self._agents:  # once: an agent must not change under a session's hands
            self._agents[key] = self._ensure(agent)
        return self._preparer.prepare(self._agents[key])

    def find_image(self, agent: Agent) -> ImageIdentity:
        """Return the image of an agent, found, pulled or built."""
        image = self.images.ensure(agent)
        return ImageIdentity(image.id, image.digest)

    def save_image(self, agent: Agent, path: Path) -> None:
        """Write the image of an agent to a file, for another engine to load."""
        self.images.save(self.images.ensure(agent), path)

    def expect_image(self, image: ImageIdentity, bring: Bring) -> None:
        """Run agents in this very image, and in no other; *bring* returns it, saved."""
        self._expected = (image, bring)

    def _ensure(self, agent: Agent) -> Image:
        if self._expected is None:
            return self.images.ensure(agent)
        return self.images.ensure_same(agent, *self._expected)

    def home(self, job: Job, prepared: Prepared) -> Home:
        """Return the home folder of a job, tied to the engine as it allows."""
        if self.engine.facts.local:
            return Home(job, prepared.account)
        with self.engine.asked("cannot copy the data to the engine"):
            volume = self._volumes.ensure(job.data, prepared.name)
        return RemoteHome(self.engine, job, prepared.account, volume)

    def claim(self, limits: Limits) -> LeaseClaim:
        """Return what an attempt needs for itself: all that its container may use."""
        return LeaseClaim.of(limits)

    def capacity(self, limits: Limits) -> Capacity:
        """Return what the engine's host has for attempts."""
        facts = self.engine.facts
        if facts.local:
            return Capacity(facts.cpus, facts.memory_bytes, gpus_for(limits))
        if limits.gpus:
            raise ConfigError(
                f"GPUs of another machine ({facts.host}) cannot be leased from here: "
                "run pytest there, or use --mle-gpus=0"
            )
        return Capacity(facts.cpus, facts.memory_bytes, place=facts.host)

    def make_room(self) -> None:
        """End the containers of dead workers: they let go of their leases when they died."""
        remove_orphans(self.engine)

    def end_orphans(self) -> None:
        """End the containers of dead processes, by a connection of one's own."""
        deadline = time.monotonic() + RESTART_SECONDS
        while True:
            try:
                remove_orphans(Engine(self._address))
            except (ConfigError, SandboxError):  # it may be restarted just now
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)
            else:
                return

    def wait_until_ready(self, waiting: Callable[[str], object]) -> None:
        """Wait for an engine that is being restarted; one that stays away is lost."""
        if not self.engine.answers():
            waiting(f"waiting for the engine at {self.engine.address}, which does not answer")
            self.engine.wait_until_it_answers(RESTART_SECONDS)

    def run(self, job: Job) -> Ending:
        """Run the agent to its end or to its limits, collect what it left, leave nothing behind."""
        if len(job.gpus) != job.limits.gpus:
            raise SandboxError(
                f"the attempt needs {job.limits.gpus} GPUs and has a lease of {len(job.gpus)}"
            )
        if self._require_walls:  # an agent of a fixture has not been seen before
            require_walls(self.engine.facts, job.agent, job.network)
        while self.left:
            self.left.pop().remove()
        with termination_interrupts():
            return Execution(self, job, grace=self._grace).run()


def _require_nearness(facts: EngineFacts, agent: Agent, network: str) -> None:
    """Refuse what needs an engine on this machine where it runs on another."""
    if facts.local:
        return
    if agent.mounts:
        raise ConfigError(
            f"agent {agent.name!r} wants mounts of this machine, but its engine runs on "
            f"another ({facts.host}): put the files into the image"
        )
    if network.startswith("allow:"):
        raise ConfigError(
            f"--mle-network={network} needs an engine on this machine, and this one runs on "
            f"{facts.host}: run pytest there, or use --mle-network=none or open"
        )
    if agent.models:
        raise ConfigError(
            f"the models of agent {agent.name!r} need an engine on this machine, and this one "
            f"runs on {facts.host}: run pytest there"
        )


def _require_runtime(facts: EngineFacts, agent: Agent) -> None:
    if agent.runtime is not None and agent.runtime not in facts.runtimes:
        raise UnknownName(f"runtime of agent {agent.name!r}:", agent.runtime, facts.runtimes)
