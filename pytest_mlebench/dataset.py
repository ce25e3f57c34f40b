"""A prepared dataset: what the agent sees, and what it must never see."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_mlebench.competition import Competition


@dataclass(frozen=True)
class Dataset:
    """The prepared folders of one competition in a store."""

    competition: Competition  # what it is the data of
    public: Path  # what the agent sees
    private: Path  # the answers, never for an agent
    verified: str = "unverified"  # how the files were verified: by checksum, by marker, off
    sum: str | None = None  # of the files that its marker lists

    @property
    def sample(self) -> Path:
        """Return the sample submission."""
        return self.public / self.competition.sample

    @property
    def answers(self) -> Path:
        """Return the answers."""
        return self.private / self.competition.answers
