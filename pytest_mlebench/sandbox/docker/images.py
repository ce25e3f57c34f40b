"""Images: found, pulled or built once, with the build's log kept."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from filelock import FileLock

from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError, InfrastructureError
from pytest_mlebench.sandbox import ImageIdentity
from pytest_mlebench.sandbox.docker.build_context import Context
from pytest_mlebench.sandbox.docker.engine import Engine

REPOSITORY = "pytest-mlebench"

Bring = Callable[[], Iterator[bytes]]  # returns an image as another engine has saved it

# What the reference's Dockerfiles take as build arguments; given to those that ask.
BUILD_ARGUMENTS = {
    "SUBMISSION_DIR": "/home/submission",
    "LOGS_DIR": "/home/logs",
    "CODE_DIR": "/home/code",
    "AGENT_DIR": "/home/agent",
    "DATA_DIR": "/home/data",
}
_TAIL = 20  # lines of a build's log in an error


@dataclass(frozen=True)
class Image:
    """An image on the engine."""

    name: str  # as the user knows it
    id: str
    digests: tuple[str, ...]  # as a registry knows it; none for one that was built here
    user: str
    command: tuple[str, ...]  # what the image itself starts
    architecture: str

    @property
    def digest(self) -> str:
        """Return what identifies the image's content for ever."""
        return self.digests[0] if self.digests else self.id


class Images:
    """The images of one engine; *cache* keeps locks and logs, *hidden* is never built in."""

    def __init__(self, engine: Engine, cache: Path, hidden: Sequence[Path] = ()) -> None:
        self._engine = engine
        self._cache = cache
        self._hidden = hidden

    def ensure(self, agent: Agent) -> Image:
        """Return the agent's image: there already, else built or pulled by one process alone."""
        if agent.build is not None:
            return self.build(agent.build, agent.name, alias=agent.image)
        name = _named(agent)
        found = self.find(name)
        return self._pull(name) if found is None else found

    def require(self, agent: Agent) -> None:
        """Refuse an image that can be neither found nor had, without pulling or building it."""
        if agent.build is not None:
            Context(agent.build, "Dockerfile", self._hidden)  # one that is not there ends here
            return
        name = _named(agent)
        if self._engine.facts.name == "podman" or self.find(name) is not None:
            return  # Podman answers no questions about registries
        errors = self._engine.sdk.errors
        try:
            self._engine.api.inspect_distribution(name)
        except (errors.APIError, OSError) as refusal:
            raise _unobtainable(name, getattr(refusal, "explanation", None) or refusal) from None

    def ensure_same(self, agent: Agent, wanted: ImageIdentity, bring: Bring) -> Image:
        """Return the very image that another engine has: there already, else pulled or sent."""
        with self.lock(_slug(wanted.id)):
            found = self.find(wanted.id)
            if found is None and "@" in wanted.digest:
                with contextlib.suppress(ConfigError):  # no registry is reached: it is sent
                    self._pull(wanted.digest)
                found = self.find(wanted.id)
            if found is None:
                self._load(wanted, bring)
                found = self.find(wanted.id)
        if found is None:
            raise ConfigError(
                f"the image {wanted.id} was loaded and is not there: does this engine keep images "
                "in another way (containerd's store)? use the same kind everywhere"
            )
        name = agent.image or agent.name
        return replace(found, name=name, digests=(wanted.digest,))

    def save(self, image: Image, path: Path) -> None:
        """Write an image to a file."""
        with self._engine.asked(f"cannot save the image {image.name}"), path.open("wb") as file:
            for piece in self._engine.streams.get_image(image.id):
                file.write(piece)

    def _load(self, wanted: ImageIdentity, bring: Bring) -> None:
        errors, problem = self._engine.sdk.errors, None
        try:
            for step in self._engine.streams.load_image(bring(), quiet=True):
                problem = step.get("error", problem)
            repository, tag = f"{REPOSITORY}/sent", wanted.id.partition(":")[2][:20]
            self._engine.api.tag(wanted.id, repository, tag)  # what has no name is soon removed
        except (errors.APIError, InfrastructureError, OSError) as refusal:
            problem = str(getattr(refusal, "explanation", None) or refusal)
        if problem is not None:
            raise ConfigError(
                f"the image {wanted.digest} is not on the engine, cannot be pulled, and was not "
                f"sent ({problem}): pull or load it here"
            )

    def find(self, name: str) -> Image | None:
        """Return an image that is on the engine."""
        try:
            facts = self._engine.api.inspect_image(name)
        except self._engine.sdk.errors.APIError as problem:
            if problem.is_client_error() or "invalid reference" in str(problem):
                return None  # no such image, or no such name
            raise
        config = facts.get("Config") or {}
        return Image(
            name=name,
            id=facts["Id"],
            digests=tuple(facts.get("RepoDigests") or ()),
            user=config.get("User") or "",
            command=(*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ())),
            architecture=facts.get("Architecture", "?"),
        )

    def build(
        self,
        folder: Path,
        name: str,
        *,
        alias: str | None = None,
        arguments: Mapping[str, str] | None = None,
        dockerfile: str = "Dockerfile",
    ) -> Image:
        """Build a folder, unless the very same content has been built before."""
        context = Context(folder, dockerfile, self._hidden)
        wanted = BUILD_ARGUMENTS | dict(arguments or {})
        given = {name: wanted[name] for name in context.arguments() if name in wanted}
        bases = [image.id for base in context.bases(given) if (image := self.find(base))]
        key = context.key([*sorted(given.items()), *bases, dockerfile])
        tag = f"{REPOSITORY}/{_slug(name)}:{key}"
        with self.lock(key):
            image = self.find(tag)
            if image is None:
                self._build(context, tag, given)
                image = self.find(tag)
        if image is None:
            raise ConfigError(f"the image {tag} vanished right after it was built")
        if alias:
            self._engine.api.tag(image.id, *_split_tag(alias), force=True)
        return image

    def lock(self, key: str) -> FileLock:
        """Return the lock that lets one process at a time make what *key* stands for."""
        folder = self._cache / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / f"{key}.lock")

    def build_log(self, tag: str) -> Path:
        """Return where the log of a build is kept."""
        return self._cache / "builds" / f"{_slug(tag)}.log"

    def _build(self, context: Context, tag: str, arguments: Mapping[str, str]) -> None:
        log = self.build_log(tag)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as file, context.archive(log.parent) as archive:
            try:
                steps = self._engine.streams.build(
                    fileobj=archive,
                    custom_context=True,
                    tag=tag,
                    rm=True,
                    forcerm=True,
                    dockerfile=context.dockerfile,
                    buildargs=dict(arguments),
                    decode=True,
                )
                problem = _follow(steps, file)
            except self._engine.sdk.errors.APIError as refusal:
                problem = str(refusal.explanation or refusal)
        if problem is not None:
            tail = log.read_text(encoding="utf-8").splitlines()[-_TAIL:]
            raise ConfigError(
                "\n".join([f"cannot build {context.folder}: {problem} (log: {log})", *tail])
            )

    def _pull(self, name: str) -> Image:
        errors = self._engine.sdk.errors
        repository, tag = _split_tag(name)
        with self.lock(_slug(name)):
            if (found := self.find(name)) is not None:
                return found
            try:
                steps = self._engine.streams.pull(repository, tag, stream=True, decode=True)
                problem = next((step["error"] for step in steps if "error" in step), None)
            except (errors.APIError, OSError) as refusal:
                problem = str(getattr(refusal, "explanation", None) or refusal)
            found = self.find(name)
        if found is None:
            raise _unobtainable(name, problem)
        return found


def identify_image(name: str) -> dict[str, str]:
    """Return what identifies an image of this host's engine, pulled if need be."""
    with tempfile.TemporaryDirectory() as cache:
        image = Images(Engine(), Path(cache)).ensure(Agent(name="image", image=name))
    return {"id": image.id, "digest": image.digest}


def refuse_archive(agent: Agent) -> None:
    """Refuse an image that is a file: an engine has images by their names."""
    if agent.image_archive is not None:
        raise ConfigError(
            f"the image of agent {agent.name!r} is an archive, {agent.image}: docker load it "
            "and give agent.toml its name, or use --mle-sandbox=rootless"
        )


def _named(agent: Agent) -> str:
    if agent.image is None:
        raise ConfigError(
            f"agent {agent.name!r} has no image: give agent.toml an image= or a build=, "
            "or use --mle-sandbox=process"
        )
    refuse_archive(agent)
    return agent.image


def _unobtainable(name: str, problem: object) -> ConfigError:
    return ConfigError(
        f"the image {name!r} is not on the engine and cannot be pulled ({problem}): "
        "build it or correct the agent's image="
    )


def _follow(steps: Iterable[Mapping[str, Any]], log: TextIO) -> str | None:
    """Write a build's steps to a log as they come; return why it failed, if it did."""
    problem = None
    for step in steps:
        text = step.get("stream") or step.get("error") or step.get("status") or ""
        log.write(text if text.endswith("\n") else f"{text}\n")
        log.flush()
        if "error" in step:
            problem = str(step["error"]).strip()
            if "BuildKit" in problem or "--mount" in problem:
                problem += "; build it yourself with `docker build` and give agent.toml image="
    return problem


def _split_tag(name: str) -> tuple[str, str | None]:
    """Return repository and tag (or digest) of an image's name; no tag means latest."""
    if "@" in name:
        repository, _, digest = name.partition("@")
        return repository, digest
    repository, colon, tag = name.rpartition(":")
    return (repository, tag) if colon and "/" not in tag else (name, "latest")


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._") or "agent"
