"""Where an agent runs: the protocol every sandbox keeps, and the data that cross it.

A sandbox gets a ``Job`` and nothing else. No path of the answers, no grader and no threshold is
part of a job, so none can leak through a sandbox.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import SandboxError
from pytest_mlebench.layout import AttemptFolder
from pytest_mlebench.limits import Limits

if TYPE_CHECKING:
    from socket import socket

Reason = Literal[
    "exited",
    "time-limit",
    "memory-limit",
    "disk-limit",
    "files-limit",
    "process-limit",
    "sandbox-lost",  # while the agent ran: its failure, as nobody can show that it was not
    "interrupted",
]


class Service(Protocol):
    """Something on our side that an agent reaches over HTTP, whatever its network is."""

    @property
    def name(self) -> str:
        """Return what tells it from other services of a job, in a file's name."""

    @property
    def port(self) -> int:
        """Return its port where the agent has a loopback of its own."""

    def serve(self, listener: socket) -> None:
        """Serve on a socket that listens already, of whatever family it is."""

    def environment(self, address: str) -> Mapping[str, str]:
        """Return the variables that lead an agent to the service at ``http://HOST:PORT``."""


@dataclass(frozen=True)
class Job:
    """One attempt to run: what the agent is given and where its traces go."""

    competition: str  # its id
    seed: int  # from 0
    agent: Agent  # what to start
    limits: Limits  # that it runs under
    network: str  # "none", "open" or "allow:HOST,…"
    data: Path  # the public folder of the dataset, with description.md; read-only for the agent
    instructions: str  # becomes instructions.txt
    folder: Path  # the attempt's own folder, empty but for its record
    check: Callable[[Path], None]  # raises InvalidSubmission: the format check
    hidden: tuple[Path, ...] = ()  # what the agent must not be able to read (the store, the runs)
    labels: Mapping[str, str] = field(default_factory=dict)  # run, attempt, host, pid
    gpus: tuple[str, ...] = ()  # device ids of a lease, as many as the limits say
    services: tuple[Service, ...] = ()  # beside the format check: the gateway to models

    @property
    def log(self) -> Path:
        """Return the file that receives the agent's output while it runs."""
        return AttemptFolder(self.folder).log

    @property
    def stats(self) -> Path:
        """Return the file that receives samples of what the agent uses while it runs."""
        return AttemptFolder(self.folder).stats

    @property
    def submission(self) -> Path:
        """Return where the sandbox leaves the collected submission, if there is one."""
        return AttemptFolder(self.folder).submission

    @property
    def artefacts(self) -> Path:
        """Return where the sandbox leaves what it collected of the agent's logs and code."""
        return AttemptFolder(self.folder).artefacts


@dataclass(frozen=True)
class Ending:
    """How an attempt ended. A sandbox that failed itself raises SandboxError instead."""

    reason: Reason  # what ended it
    exit_code: int | None  # the agent's own; None where it had none
    seconds: float  # that the agent ran
    format_checks: int = 0  # how often it asked for the format check
    peak_memory_bytes: int | None = None  # None where nobody measured it
    cpu_seconds: float | None = None  # the same
    image: str | None = None  # the image's digest
    gpus: tuple[str, ...] = ()  # device ids that it had
    problem: str | None = None  # why nothing could be collected, e.g. a submission that is a link
    walls: tuple[str, ...] = ()  # what kept the agent in, by name, e.g. "mounts", "landlock-7"
    details: Mapping[str, Any] = field(
        default_factory=dict
    )  # what else the sandbox knows, in JSON types

    def to_dict(self) -> dict[str, Any]:
        """Return the ending in JSON types."""
        return asdict(self) | {"gpus": list(self.gpus), "walls": list(self.walls)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Ending:
        """Return the ending that ``to_dict`` wrote; keys of later versions are passed over."""
        known = {item.name: data[item.name] for item in fields(cls) if item.name in data}
        lists = {name: tuple(data.get(name) or ()) for name in ("gpus", "walls")}
        return cls(**(known | lists))


class Sandbox(Protocol):
    """A place where agents run."""

    name: str

    def preflight(self, agent: Agent, limits: Limits, network: str) -> tuple[str, ...]:
        """Raise ConfigError if the agent cannot run here; return lines for the header."""

    def run(self, job: Job) -> Ending:
        """Run the agent to its end or to its limits, collect what it left, leave nothing behind."""


@runtime_checkable
class Recovering(Protocol):
    """A sandbox that may be gone for a while, such as one whose engine is restarted."""

    def wait_until_ready(self, waiting: Callable[[str], object]) -> None:
        """Return when agents can run, having said for what one waits; else raise SandboxError."""


@dataclass(frozen=True)
class ImageIdentity:
    """What tells an image from all others, on whichever engine it is."""

    id: str  # of its configuration, which lists its layers: the same after it was sent
    digest: str  # as a registry knows it, else the id


@runtime_checkable
class Imaging(Protocol):
    """A sandbox whose agents run in images, which may be sent from one host to another."""

    def find_image(self, agent: Agent) -> ImageIdentity:
        """Return the image of an agent, found, pulled or built; else raise ConfigError."""

    def save_image(self, agent: Agent, path: Path) -> None:
        """Write the image of an agent to a file, for another engine to load."""

    def expect_image(self, image: ImageIdentity, bring: Callable[[], Iterator[bytes]]) -> None:
        """Run agents in this very image, and in no other; *bring* returns it, saved."""


@runtime_checkable
class Outliving(Protocol):
    """A sandbox whose agents live on when the process that started them is killed."""

    def end_orphans(self) -> None:
        """End what dead processes of this host have left running; called in any process."""


def contract_environment(
    job: Job, home: str, *, validate_url: str, agent_dir: str
) -> dict[str, str]:
    """Return the environment variables of the agent's contract for a home folder."""
    time_limit = str(round(job.limits.time_seconds))
    return dict.fromkeys(job.agent.time_variables, time_limit) | {
        "COMPETITION_ID": job.competition,
        "DATA_DIR": f"{home}/data",
        "SUBMISSION_DIR": f"{home}/submission",
        "LOGS_DIR": f"{home}/logs",
        "CODE_DIR": f"{home}/code",
        "AGENT_DIR": agent_dir,
        "MLE_SEED": str(job.seed),
        "MLE_TIME_LIMIT_SECS": time_limit,
        "MLE_VALIDATE_URL": validate_url,
    }


def require_readable(data: Path) -> None:
    """Refuse data that an agent with a user of its own could not read, before it stumbles."""
    if os.getuid() == 0 and data.stat().st_mode & 0o005 != 0o005:
        raise SandboxError(
            f"the agent's user may not read {data}: chmod -R a+rX makes the data readable"
        )
