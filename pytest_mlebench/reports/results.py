"""Results: what became of one competition with one seed, in a form that crosses processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pytest_mlebench._toml import Table
from pytest_mlebench.attempts.record import Run, Snapshot
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.grade import Grade
from pytest_mlebench.medals import Medal

# graded: there is a valid score, whatever it is worth; failed: the agent's fault, no valid score;
# error: the benchmark's own fault; missing: was to run and did not finish
Outcome = Literal["graded", "failed", "error", "missing"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True)
class Result:
    """The outcome of one competition with one seed."""

    competition: str
    seed: int
    outcome: Outcome
    grade: Grade | None = None
    error: str | None = None
    agent_seconds: float | None = None
    run: str | None = None  # the folder of the attempt
    format_checks: int = 0
    snapshots: tuple[Snapshot, ...] = ()

    @classmethod
    def from_run(cls, run: Run) -> Result:
        """Return the result that a run's record tells of."""
        outcome: Outcome = "missing"
        error = run.error
        if run.phase == "graded" and run.grade is not None:
            outcome = "graded" if run.grade.valid else "failed"
        elif run.phase == "error":
            outcome = "error"
        else:
            error = error or f"interrupted: the attempt was left {run.phase!r}"
        return cls(
            competition=run.competition,
            seed=run.seed,
            outcome=outcome,
            grade=run.grade if run.phase == "graded" else None,
            error=error,
            agent_seconds=run.outcome.get("seconds"),
            run=str(run.folder),
            format_checks=run.outcome.get("format_checks") or 0,
            snapshots=tuple(run.snapshots),
        )

    @property
    def key(self) -> tuple[str, int]:
        """Return what identifies a result."""
        return self.competition, self.seed

    @property
    def valid(self) -> bool:
        """Tell whether there is a score."""
        return self.grade is not None and self.grade.valid

    @property
    def medal(self) -> Medal:
        """Return the medal; whatever has no grade has none."""
        return Medal.NONE if self.grade is None else self.grade.medal

    @property
    def above_median(self) -> bool:
        """Tell whether the score is better than the median team's."""
        return self.grade is not None and self.grade.above_median

    @property
    def problem(self) -> str | None:
        """Return why there is no score, if there is none."""
        if self.error is not None:
            return self.error
        return None if self.grade is None else self.grade.problem

    def to_dict(self) -> dict[str, Any]:
        """Return the result in JSON types."""
        return {
            "competition": self.competition,
            "seed": self.seed,
            "outcome": self.outcome,
            "grade": None if self.grade is None else self.grade.to_dict(),
            "error": self.error,
            "agent_seconds": self.agent_seconds,
            "run": self.run,
            "format_checks": self.format_checks,
            "snapshots": [snapshot.to_dict() for snapshot in self.snapshots],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "result") -> Result:
        """Return the result that ``to_dict`` wrote; anything else is an error naming *where*."""
        table = json_table(data, where)
        grade = table.table("grade", None)
        competition = table.text("competition")
        outcome: Outcome = table.choice("outcome", OUTCOMES)
        result = cls(
            competition=competition,
            seed=_count(table, "seed"),
            outcome=outcome,
            grade=None if grade is None else _grade(grade, competition),
            error=table.text("error", None),
            agent_seconds=table.number("agent_seconds", None),
            run=table.text("run", None),
            format_checks=_count(table, "format_checks", 0),
            snapshots=_snapshots(data.get("snapshots"), where),
        )
        if (outcome == "graded") != result.valid:
            raise table.error("outcome", f"is {outcome!r}, which the grade contradicts")
        return result


def complete(
    results: Iterable[Result], expected: Iterable[tuple[str, int]] = ()
) -> tuple[Result, ...]:
    """Return one result per competition and seed, adding a missing one for each that is expected.

    Of several results with the same key the last one counts that is not itself missing.
    """
    found: dict[tuple[str, int], Result] = {
        key: Result(*key, outcome="missing", error="never ran") for key in expected
    }
    for result in results:
        if result.key not in found or result.outcome != "missing":
            found[result.key] = result
        elif found[result.key].outcome == "missing":
            found[result.key] = result  # it may know why it is missing
    return tuple(found.values())


def json_table(data: object, where: str) -> Table:
    """Return a JSON object as a table in which null is the same as absent."""
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where}: must be an object, given: {type(data).__name__}")
    return Table(_without_null(data), where, ConfigError)


def _without_null(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_null(value) if isinstance(value, Mapping) else value
        for key, value in data.items()
        if value is not None
    }


def _grade(table: Table, competition: str) -> Grade:
    medal = table.choice("medal", tuple(str(medal) for medal in Medal))
    grade = Grade(
        competition=competition,
        score=table.number("score", None),
        medal=Medal[medal.upper()],
        above_median=table.flag("above_median", False),
        percentile=table.number("percentile", None),
        submission_exists=table.flag("submission_exists", False),
        problem=table.text("problem", None),
        gold=table.number("gold"),
        silver=table.number("silver"),
        bronze=table.number("bronze"),
        median=table.number("median"),
        lower_is_better=table.flag("lower_is_better", False),
        teams=_count(table, "teams", 0),
        run=table.text("run", None),
    )
    if grade.medal and not grade.valid:
        raise table.error("medal", f"is {medal!r}, but there is no score")
    return grade


def _snapshots(data: object, where: str) -> tuple[Snapshot, ...]:
    if data is None:
        return ()
    if not isinstance(data, list):
        raise ConfigError(f"{where}: snapshots must be a list, given: {type(data).__name__}")
    tables = [json_table(one, f"{where}: snapshots[{i}]") for i, one in enumerate(data)]
    return tuple(_snapshot(table) for table in tables)


def _snapshot(table: Table) -> Snapshot:
    medal = table.choice("medal", tuple(str(medal) for medal in Medal))
    return Snapshot(
        seconds=table.number("seconds"),
        sha256=table.text("sha256"),
        bytes=_count(table, "bytes"),
        score=table.number("score", None),
        medal=Medal[medal.upper()],
        above_median=table.flag("above_median", False),
        percentile=table.number("percentile", None),
        problem=table.text("problem", None),
    )


def _count(table: Table, key: str, default: int | None = None) -> int:
    value = table.number(key) if default is None else table.number(key, default)
    if value < 0 or value != int(value):
        raise table.error(key, f"must be a whole number, zero or more, given: {value}")
    return int(value)
