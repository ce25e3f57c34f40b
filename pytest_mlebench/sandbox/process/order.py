"""What a supervisor is told: one attempt as plain data, which may go to another interpreter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal, NoReturn, Protocol

from pytest_mlebench.agent import AgentContext
from pytest_mlebench.limits import Limits

Function = Callable[[AgentContext], object]

Builder = Literal["bubblewrap", "namespaces", "none"]  # who builds the walls
StepKind = Literal["show", "lend", "device", "link", "file", "empty"]


@dataclass(frozen=True)
class Step:
    """One thing that an agent finds on its own file system.

    ``show`` is a read-only view of *source*, ``lend`` a writable one, ``device`` one with devices,
    ``link`` a symbolic link to *source*, ``file`` a file with the text *source*, ``empty`` a folder
    of at most *size* bytes.
    """

    kind: StepKind
    target: str
    source: str = ""
    size: int = 0


@dataclass(frozen=True)
class Surroundings:
    """What an agent finds around it; ``Order`` has what each means."""

    environment: dict[str, str]
    steps: tuple[Step, ...]
    root: str = ""
    outside: tuple[Step, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Order:
    """All that a supervisor needs to know."""

    command: tuple[str, ...]  # nothing: try out the walls and end
    environment: dict[str, str]
    home: str
    log: str
    stats: str
    secrets: tuple[str, ...]
    walls: Builder
    steps: tuple[Step, ...]
    root: str = ""  # a folder that is the agent's "/"; without one the steps alone make it
    outside: tuple[Step, ...] = ()  # beside that root: what the first process needs to begin with
    hidden: tuple[str, ...]  # for want of mounts: what must not be read
    user: int | None  # whom the agent runs as; None: as the session
    offline: bool  # no network but what we serve on the ports
    ports: tuple[int, ...] = ()
    cgroup: bool  # use one where there is one for us
    disk: str = ""  # the file behind a disk of the attempt's own, which is mounted at *home*
    required: tuple[str, ...] = ()  # walls without which the agent must not start
    grace_seconds: float
    limits: Limits

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Order:
        """Return the order that ``to_dict`` wrote, even if it came by JSON."""
        names = ("command", "hidden", "secrets", "ports", "required")
        lists = {name: tuple(data[name]) for name in names}
        steps = {name: tuple(Step(**step) for step in data[name]) for name in ("steps", "outside")}
        return cls(**(data | lists | steps | {"limits": Limits(**data["limits"])}))


@dataclass
class Entrance:
    """What the first process inside is made of; ``inside`` has what it does with it."""

    plan: dict[str, Any]  # all that it needs to know, as plain data
    channel: int  # a socket to the supervisor
    output: int  # where the agent prints to
    call: Callable[[], int] | None  # the agent, if it is a function


class Build(Protocol):
    """Builds walls around a process that is, or becomes, the first one inside."""

    def __call__(self, order: Order, entrance: Entrance) -> NoReturn:
        """In a child: put the names of the walls into the plan, and run what is inside."""
