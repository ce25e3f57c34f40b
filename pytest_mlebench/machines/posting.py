"""What a worker on another machine is told, beside the settings: plain data for execnet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

KEY = "mle_posting"  # in what xdist gives its workers


@dataclass(frozen=True)
class Posting:
    """Where a worker is, and what it needs of the controller."""

    machine: str
    run: str  # the run's folder on the controller, which may be shared
    token: str  # in the run's folder there: whoever finds it shares the folder
    grace: float  # seconds that an attempt outlives its connection; 0: it does not
    silence: float  # seconds without a heartbeat, after which the controller is gone
    agent_sha256: str
    agent_size: int
    identity: Mapping[str, str] | None  # of the agent, as the controller has found it
    secrets: Mapping[str, str]  # variables that the agent's settings refer to: never on disk

    def to_dict(self) -> dict[str, Any]:
        """Return the posting in types that execnet can send."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Posting:
        """Return what ``to_dict`` wrote."""
        return cls(**{item.name: data[item.name] for item in fields(cls)})
