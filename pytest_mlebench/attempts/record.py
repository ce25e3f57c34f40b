"""Runs on disk: one folder per run, competition, seed and attempt; a record written per phase.

RUNS/NAME/run.json                                     the settings and the disclosure
RUNS/NAME/<competition>/seed<k>/attempt<n>/record.json  what happened, phase by phase
                                          run.log       the agent's output
                                          submission.csv, artefacts/, snapshots/
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pytest_mlebench._files import write_text
from pytest_mlebench.grade import Grade
from pytest_mlebench.medals import Medal

RECORD = "record.json"
SCHEMA = 1

Phase = Literal["created", "waiting", "running", "collected", "graded", "error"]


@dataclass(frozen=True)
class Snapshot:
    """A submission as it was while the agent ran; after the run, with its grade."""

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
    def from_dict(cls, data: dict[str, Any]) -> Snapshot:
        """Return the snapshot that ``to_dict`` wrote."""
        return cls(**(data | {"medal": Medal[data["medal"].upper()]}))


@dataclass
class Run:
    """One attempt of one competition with one seed, as its folder tells it."""

    folder: Path
    competition: str
    seed: int
    attempt: int
    agent: str
    phase: Phase = "created"
    grade: Grade | None = None
    error: str | None = None  # an infrastructure error, never the agent's fault
    timings: dict[str, float] = field(default_factory=dict)  # phase -> when it was reached
    outcome: dict[str, Any] = field(default_factory=dict)  # the sandbox's Outcome as plain data
    conditions: dict[str, Any] = field(default_factory=dict)  # limits, network, sandbox, data
    snapshots: list[Snapshot] = field(default_factory=list)

    @property
    def submission(self) -> Path:
        """Return the collected submission, which need not exist."""
        return self.folder / "submission.csv"

    @property
    def log(self) -> Path:
        """Return the agent's output."""
        return self.folder / "run.log"

    @property
    def is_over(self) -> bool:
        """Tell whether the agent has run to its end, so that it is not to run again."""
        return self.phase in {"collected", "graded"}

    def enter(self, phase: Phase) -> None:
        """Reach *phase* and write the record before anything else happens."""
        self.phase = phase
        self.timings[phase] = time.time()
        self.save()

    def save(self) -> None:
        """Write the record atomically."""
        data = {
            "schema": SCHEMA,
            "competition": self.competition,
            "seed": self.seed,
            "attempt": self.attempt,
            "agent": self.agent,
            "phase": self.phase,
            "grade": None if self.grade is None else self.grade.to_dict(),
            "error": self.error,
            "timings": self.timings,
            "outcome": self.outcome,
            "conditions": self.conditions,
            "snapshots": [snapshot.to_dict() for snapshot in self.snapshots],
        }
        write_text(self.folder / RECORD, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def read_run(folder: Path) -> Run | None:
    """Return the run recorded in *folder*, or None where there is no complete record."""
    try:
        data = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return None
    if data.pop("schema", None) != SCHEMA:
        return None
    grade = data.pop("grade")
    snapshots = [Snapshot.from_dict(snapshot) for snapshot in data.pop("snapshots", [])]
    return Run(folder, grade=grade and Grade.from_dict(grade), snapshots=snapshots, **data)


def attempts(folder: Path) -> list[Run]:
    """Return the attempts recorded below a ``seed<k>`` folder, the oldest first."""
    numbers = sorted(
        int(path.name.removeprefix("attempt"))
        for path in folder.glob("attempt*")
        if path.name.removeprefix("attempt").isdecimal()
    )
    runs = (read_run(folder / f"attempt{number}") for number in numbers)
    return [run for run in runs if run is not None]
