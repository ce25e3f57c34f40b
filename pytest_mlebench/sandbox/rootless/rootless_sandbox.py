"""The sandbox itself: what it refuses before anything runs, and what it runs."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pytest_mlebench._problems import together
from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError, SandboxError
from pytest_mlebench.host.leases import LeaseClaim, require
from pytest_mlebench.limits import Limits
from pytest_mlebench.sandbox import Ending, ImageIdentity, Job
from pytest_mlebench.sandbox.account import AGENT_DIR
from pytest_mlebench.sandbox.process import kernel
from pytest_mlebench.sandbox.process.order import Builder, Surroundings
from pytest_mlebench.sandbox.process.own_disk import MIN_SECONDS
from pytest_mlebench.sandbox.process.process_sandbox import GRACE, ProcessSandbox
from pytest_mlebench.sandbox.process.walls import Strength, strongest
from pytest_mlebench.sandbox.process.workspace import Workspace
from pytest_mlebench.sandbox.rootless.image_cache import Bring, ImageCache, UnpackedImage
from pytest_mlebench.sandbox.rootless.image_home import lay_image_home
from pytest_mlebench.sandbox.rootless.image_view import surroundings
from pytest_mlebench.sandbox.rootless.mount_points import make_mount_points

BUILDERS: tuple[Builder, ...] = ("bubblewrap", "namespaces")  # without walls there is no image

_NOT_ENFORCED = (
    "not enforced without root: a quota of CPUs (an affinity instead), "
    "the bound of the disk (watched instead), the users of the image (all files are the agent's)"
)
_OPEN = (
    "the open network is this host's: the format check is at MLE_VALIDATE_URL, "
    "not at localhost:5000"
)


class RootlessSandbox(ProcessSandbox):
    """Run agents in their images as processes of this host, by whoever runs pytest."""

    name = "rootless"

    def __init__(
        self,
        *,
        cache: Path,
        hidden: Sequence[Path] = (),  # never part of an image that is built
        grace_seconds: float = GRACE,
        require_walls: bool = False,
        builders: tuple[Builder, ...] = BUILDERS,
        cgroup: bool = True,
        own_disk_seconds: float = MIN_SECONDS,
    ) -> None:
        super().__init__(
            grace_seconds=grace_seconds,
            require_walls=require_walls,
            builders=builders,
            cgroup=cgroup,
            own_disk_seconds=own_disk_seconds,
        )
        self._images = ImageCache(cache, hidden)
        self._agents: dict[tuple[str | None, Path | None], UnpackedImage] = {}
        self._expected: tuple[ImageIdentity, Bring] | None = None

    def preflight(self, agent: Agent, limits: Limits, network: str) -> tuple[str, ...]:
        """Raise ConfigError if the agent cannot run here; return lines for the header."""
        without = replace(limits, gpus=0)  # what is said of GPUs is said once
        together(
            lambda: _require_image(agent),
            lambda: _refuse_wishes(agent),
            lambda: self._refuse_lists(network),
            lambda: self._look_at_archive(agent),
            agent.environment,
            agent.model_keys,
            lambda: require(LeaseClaim.of(without), self.capacity(without)),
            lambda: require(LeaseClaim(gpus=limits.gpus), self.capacity(limits)),
        )
        image = self.image(agent)
        self._command(agent)
        self._require_network(agent, network)
        walls = self._checked_walls(agent, limits, network)
        lines = [f"image: {image.name} ({image.facts.digest})", *walls]
        lines.append(_NOT_ENFORCED)
        return (*lines, _OPEN) if network == "open" else tuple(lines)

    def _look_at_archive(self, agent: Agent) -> None:
        if agent.image_archive is not None and self._expected is None:
            self._images.digest(agent)  # one that cannot be read ends here

    def image_digest(self, agent: Agent) -> str:
        """Return what identifies the content of an agent's image."""
        if self._expected is not None:
            return self._expected[0].digest
        known = self._agents.get((agent.image, agent.build))
        return self._images.digest(agent) if known is None else known.facts.digest

    def image(self, agent: Agent) -> UnpackedImage:
        """Return the agent's image, ready for attempts."""
        key = (agent.image, agent.build)
        if key not in self._agents:  # once: an agent must not change under a session's hands
            self._agents[key] = self._ensure(agent)
        return self._agents[key]

    def _ensure(self, agent: Agent) -> UnpackedImage:
        if self._expected is None:
            return self._images.ensure(agent)
        image, bring = self._expected
        return self._images.ensure_same(agent, image.id, bring)

    def find_image(self, agent: Agent) -> ImageIdentity:
        """Return the image of an agent, in its file or on the engine here."""
        _require_image(agent)
        digest = self.image_digest(agent)
        return ImageIdentity(digest, digest)

    def save_image(self, agent: Agent, path: Path) -> None:
        """Write the image of an agent to a file, for another host to unpack."""
        self._images.save(agent, path)

    def expect_image(self, image: ImageIdentity, bring: Bring) -> None:
        """Run agents in this very image, and in no other; *bring* returns it, saved."""
        self._expected = (image, bring)

    def run(self, job: Job) -> Ending:
        """Run the agent to its end or to its limits, collect what it left, leave nothing behind."""
        together(  # an agent of a fixture has not been seen before
            lambda: _require_image(job.agent), lambda: _refuse_wishes(job.agent)
        )
        image = self.image(job.agent)
        ending = super().run(job)
        details = {**ending.details, "image": image.name}
        return replace(ending, image=image.facts.digest, details=details)

    def _strength(self, agent: Agent, network: str) -> Strength:
        return _strength(
            self.image(agent).root,
            offline=network == "none",
            cgroup=self._cgroup,
            builders=self._builders,
        )

    def _command(self, agent: Agent) -> tuple[str, ...]:
        image = self.image(agent)
        if chosen := agent.command or image.start:
            return chosen
        raise ConfigError(
            f"agent {agent.name!r} has nothing to start: its image {image.name!r} has neither "
            f"{AGENT_DIR}/start.sh nor a CMD, and agent.toml no command="
        )

    def _lay(self, job: Job, url: str, builder: Builder) -> Workspace:
        return lay_image_home(job, url, self.image(job.agent))

    def _surroundings(
        self, job: Job, workspace: Workspace, user: int | None, url: str, *, walled: bool
    ) -> Surroundings:
        image = self.image(job.agent)
        return surroundings(job, workspace.home, image, user=user, validate_url=url)


def try_walls() -> Strength:
    """Return the walls that images get on this host, by building them around an empty one."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "root"
        root.mkdir()
        make_mount_points(root)
        return _strength(root, offline=False, cgroup=True, builders=BUILDERS)


def _strength(
    root: Path, *, offline: bool, cgroup: bool, builders: tuple[Builder, ...]
) -> Strength:
    try:
        return strongest(offline=offline, cgroup=cgroup, builders=builders, root=str(root))
    except SandboxError as problem:
        raise ConfigError(
            f"{problem}: install bubblewrap (apt install bubblewrap, dnf install bubblewrap), "
            "or let users have namespaces, see SECURITY.md"
        ) from None


def _require_image(agent: Agent) -> None:
    if not kernel.LINUX:
        raise ConfigError("the rootless sandbox needs Linux: use --mle-sandbox=docker")
    if not (agent.image or agent.build):
        raise ConfigError(
            f"agent {agent.name!r} has no image: give agent.toml an image=, a name or a file that "
            "docker save -o FILE.tar has written, or use --mle-sandbox=process"
        )


def _refuse_wishes(agent: Agent) -> None:
    """Refuse what only an engine can give, and what no image can run."""
    if agent.function is not None:
        raise ConfigError(
            f"agent {agent.name!r} is a Python function, which cannot run in an image: "
            "use --mle-sandbox=process"
        )
    wishes = {
        "runtime": agent.runtime,
        "devices": agent.devices,
        "privileged": agent.privileged,
    }
    if asked := [name for name, value in wishes.items() if value]:
        raise ConfigError(
            f"agent {agent.name!r} asks for {' and '.join(asked)}, which the rootless sandbox "
            "cannot give: remove that from its agent.toml, or use --mle-sandbox=docker"
        )
