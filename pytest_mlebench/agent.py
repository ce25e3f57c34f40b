"""An agent under test: what to start, with which environment, under which wishes.

How agents are found (``agent.toml``, ``pyproject.toml``, ``config.yaml``, entry points, the hook)
is the business of ``pytest_mlebench.agents``.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_mlebench._references import has_broken_reference, referenced_names, resolve
from pytest_mlebench.budget import Budget
from pytest_mlebench.errors import AgentFileError, ConfigError
from pytest_mlebench.upstream import MIN_SECRET_LENGTH, PROVIDER_KEYS, Upstream

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

NETWORKS = "none, open or allow:HOST[,HOST]"


@dataclass(frozen=True)
class AgentContext:
    """What an agent written in Python is told: the contract's environment, with types."""

    data: Path  # the public data with description.md, read-only
    submission: Path  # the folder that is to receive submission.csv
    logs: Path  # a folder for logs, which are kept
    code: Path  # a folder for the code of the solution, which is kept
    agent: Path  # the agent's own files
    seed: int  # of this attempt, from 0
    time_limit: float  # seconds
    competition: str  # its id, or a code name
    validate_url: str  # of the format check: POST a file to it

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] | None = None) -> AgentContext:
        """Read the contract's variables, by default this process' own."""
        values = os.environ if variables is None else variables
        try:
            return cls(
                data=Path(values["DATA_DIR"]),
                submission=Path(values["SUBMISSION_DIR"]),
                logs=Path(values["LOGS_DIR"]),
                code=Path(values["CODE_DIR"]),
                agent=Path(values["AGENT_DIR"]),
                seed=int(values["MLE_SEED"]),
                time_limit=float(values["MLE_TIME_LIMIT_SECS"]),
                competition=values["COMPETITION_ID"],
                validate_url=values["MLE_VALIDATE_URL"],
            )
        except KeyError as missing:
            raise ConfigError(
                f"the environment variable {missing.args[0]} is missing: "
                "an agent is started by pytest --mle-agent=NAME"
            ) from None


@dataclass(frozen=True)
class Agent:
    """What runs in the sandbox: ``command`` or ``function``, in ``image`` if it has one."""

    name: str  # by which people and records know it
    version: str | None = None  # the author's own, for records and reports
    command: tuple[str, ...] = ()  # started in AGENT_DIR; empty: what the image itself starts
    function: Callable[[AgentContext], object] | None = None  # runs in a child process
    folder: Path | None = None  # the agent's own files, seen by it as AGENT_DIR
    image: str | None = None  # with ``build``: the tag that the built image gets
    build: Path | None = None  # a folder with a Dockerfile
    env: Mapping[str, str] = field(default_factory=dict)  # values may refer to ${VAR}
    models: tuple[Upstream, ...] = ()  # reached through the gateway, which keeps their keys
    budget: Budget = field(default_factory=Budget)  # what an attempt may spend on them
    limits: Mapping[str, object] = field(default_factory=dict)  # as written in agent.toml
    network: str | None = None  # none, open or allow:HOST,…; None: open
    runtime: str | None = None  # of the container engine, such as runsc; docker only
    mounts: tuple[str, ...] = ()  # "SOURCE:TARGET[:ro]", docker only, explicit opt-in
    devices: tuple[str, ...] = ()  # docker only, explicit opt-in
    privileged: bool = False  # docker only, explicit opt-in; disclosed
    llms: tuple[str, ...] = ()  # this and the next three: the author's own word, for reports
    url: str | None = None  # of the agent
    paper: str | None = None  # its address
    statement: str | None = None  # what the author declares about it
    time_variables: tuple[str, ...] = ()  # variables that get the time limit, in seconds
    notes: tuple[str, ...] = ()  # what a user should know of how its file was read

    @property
    def image_archive(self) -> Path | None:
        """Return the file or folder that ``image`` is, None where it is a name on an engine."""
        if self.image is None or self.build is not None:
            return None
        is_path = self.image.startswith("/") or self.image.endswith(".tar")
        return Path(self.image).absolute() if is_path else None

    def without_image(self, hidden: Iterable[Path]) -> tuple[Path, ...]:
        """Return what is not the agent's in its folder, its image among it: known by its digest."""
        archive = self.image_archive
        return (*hidden, *(() if archive is None else (archive,)))

    def environment(self, host: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return ``env`` with every ``${VAR}`` replaced by the host's value."""
        values = os.environ if host is None else host
        return {
            key: resolve(value, values, agent=self.name, setting=f"env sets {key}")
            for key, value in self.env.items()
        }

    def model_keys(self, host: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the real key of every upstream by its name; never for the agent's eyes."""
        return {upstream.name: upstream.real_key(self.name, host) for upstream in self.models}

    def describe_models(self) -> str | None:
        """Return which models it reaches through the gateway, for a reader; None without any."""
        return ", ".join(upstream.describe() for upstream in self.models) or None

    def secrets(self, host: Mapping[str, str] | None = None) -> frozenset[str]:
        """Return the values that came by ``${VAR}`` reference and must never be written down."""
        values = os.environ if host is None else host
        names = {name for value in self.env.values() for name in referenced_names(value)}
        keys = {name for upstream in self.models for name in upstream.references()}
        return frozenset(
            values[name]
            for least, group in ((4, names), (MIN_SECRET_LENGTH, keys))
            for name in group
            if len(values.get(name, "")) >= least
        )


def start_script(path: str, *words: str) -> tuple[str, ...]:
    """Return the command that starts a script of the agent's folder with some shell words."""
    return ("bash", "-c", " ".join(("exec", "bash", f'"$AGENT_DIR"/{shlex.quote(path)}', *words)))


def parse_env(table: Mapping[str, object], where: str) -> dict[str, str]:
    """Return environment variables, or refuse a name, a value or a reference that cannot be."""
    for key, value in table.items():
        if not _VARIABLE.fullmatch(key):
            raise AgentFileError(f"{where}: {key!r} is not a name of an environment variable")
        if not isinstance(value, str):
            raise AgentFileError(f"{where}: {key} must be a string, given: {value!r}")
        if has_broken_reference(value):
            raise AgentFileError(
                f"{where}: {key} has a reference that is not understood, "
                f"write ${{NAME}}, given: {value!r}"
            )
    return {key: str(value) for key, value in table.items()}


def uncounted_keys(agent: Agent) -> str | None:
    """Return a note on keys of providers that an agent gets by its environment; None without."""
    names = {
        name
        for key, value in agent.env.items()
        for name in (key, *referenced_names(value))
        if name in PROVIDER_KEYS and referenced_names(value)
    }
    if not names:
        return None
    return (
        f"agent {agent.name!r} gets {', '.join(sorted(names))} itself, so that nobody counts or "
        "bounds what it spends: [models.NAME] keeps the key outside"
    )


def check_models(agent: Agent, where: str) -> None:
    """Refuse an agent that would get a real key, or one variable from two places."""
    if agent.budget and not agent.models:
        raise AgentFileError(
            f"{where}: budget needs a [models.NAME]: only calls through it can be counted"
        )
    owners = {name: f"env sets {name}" for name in agent.env}
    for upstream in agent.models:
        for name in upstream.environment.names:
            if name in owners:
                raise AgentFileError(
                    f"{where}: {owners[name]}, and so does models.{upstream.name} with the "
                    "address or key of the gateway: remove one, or give the model other variables"
                )
            owners[name] = f"models.{upstream.name} sets {name}"
    kept = {name: upstream for upstream in agent.models for name in upstream.references()}
    for key, value in agent.env.items():
        for name in referenced_names(value):
            if name in kept:
                raise AgentFileError(
                    f"{where}: env gives the agent {name} as {key}, which is the key of "
                    f"models.{kept[name].name} and stays outside the sandbox: remove it from env"
                )


def parse_network(value: str, option: str) -> str:
    """Return a network policy in its canonical form, or refuse it."""
    text = value.strip()
    if text in {"none", "open"}:
        return text
    if text.startswith("allow:"):
        hosts = [host.strip() for host in text.removeprefix("allow:").split(",")]
        if all(re.fullmatch(r"(\*\.)?[A-Za-z0-9._-]+(:\d+)?", host) for host in hosts):
            return "allow:" + ",".join(dict.fromkeys(hosts))
    raise ConfigError(f"{option} must be {NETWORKS}, given: {value}")
