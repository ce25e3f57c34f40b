"""A submission as it was while the agent ran; after the run, with its grade."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pytest_mlebench.grade import Grade
from pytest_mlebench.medals import Medal


@dataclass(frozen=True)
class Snapshot:
    """One of the submissions that an agent left on its way."""

    seconds: float  # since the attempt began
    sha256: str
    bytes: int
    score: float | None = None
    medal: Medal = Medal.NONE
    above_median: bool = False
    percentile: float | None = None
    problem: str | None = None

    def graded(self, grade: Grade) -> Snapshot:
        """Return the snapshot with what it would have earned."""
        return replace(
            self,
            score=grade.score,
            medal=grade.medal,
            above_median=grade.above_median,
            percentile=grade.percentile,
            problem=grade.problem,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for a record."""
        return asdict(self) | {"medal": str(self.medal)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Snapshot:
        """Return the snapshot that ``to_dict`` wrote."""
        return cls(**{**data, "medal": Medal[data["medal"].upper()]})
