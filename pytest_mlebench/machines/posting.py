"""What a worker on another machine is told, beside the settings: plain data for execnet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from pytest_mlebench.sandbox import ImageIdentity

KEY = "mle_posting"  # in what xdist gives its workers


def place_name(machine: str, job: str | None) -> str:
    """Return what is the same only for processes that can adopt each other's attempts."""
    return machine if job is None else f"{machine}#{job}"


@dataclass(frozen=True)
class Parcel:
    """What can be fetched from the controller, unless it is there already."""

    sha256: str
    size: int


@dataclass(frozen=True)
class Posting:
    """Where a worker is, and what it needs of the controller."""

    machine: str
    job: str | None  # the allocation of Slurm that the worker is in, if it is in one of ours
    run: str  # the run's folder on the controller, which may be shared
    token: str  # in the run's folder there: whoever finds it shares the folder
    grace: float  # seconds that an attempt outlives its connection
    silence: float  # seconds without a heartbeat, after which the controller is gone
    agent: Parcel
    competitions: Parcel | None  # of one's own, if the session has any
    image: ImageIdentity | None  # that agents have to run in, if they run in one
    identity: Mapping[str, str] | None  # of the agent, as the controller has found it
    session_usd: float | None  # that all attempts may spend together, if they are bounded
    secrets: Mapping[str, str]  # variables that the agent's settings refer to: never on disk

    def to_dict(self) -> dict[str, Any]:
        """Return the posting in types that execnet can send."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Posting:
        """Return what ``to_dict`` wrote."""
        values = {item.name: data[item.name] for item in fields(cls)}
        own = values["competitions"]
        image = values["image"]
        typed = {
            "agent": Parcel(**values["agent"]),
            "competitions": own and Parcel(**own),
            "image": image and ImageIdentity(**image),
        }
        return cls(**values | typed)
