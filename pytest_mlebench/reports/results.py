"""Results: what became of one competition with one seed, in a form that crosses processes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from pytest_mlebench._plain_text import one_line
from pytest_mlebench._toml import Table
from pytest_mlebench.gateway.model_use import ModelUse
from pytest_mlebench.grade import Grade, Snapshot
from pytest_mlebench.medals import Medal
from pytest_mlebench.reports.attempt_facts import AttemptFacts, FailureKind, failure_kind
from pytest_mlebench.reports.json_table import json_table

# graded: there is a valid score, whatever it is worth; failed: the agent's fault, no valid score;
# error: the benchmark's own fault; skipped: passed over, as an option or a test said;
# missing: was to run and did not finish
Status = Literal["graded", "failed", "error", "skipped", "missing"]
STATUSES: tuple[Status, ...] = get_args(Status)
SHOWN_EXTRA, EXTRA_LETTERS = 50, 400  # facts of hooks, and letters of each, where people see them
NOT_RUN: tuple[Status, ...] = ("error", "skipped", "missing")

_KEY_TYPES = {"competition": str, "seed": int, "agent": str, "conditions": str}


@dataclass(frozen=True)
class ItemKey:
    """What identifies an item: the attempt that it is about, as far as collection knows it."""

    competition: str
    seed: int
    agent: str = ""  # its name; where a fixture brings another, where that fixture is
    conditions: str = ""  # what the test's own marker changes, "" for the usual conditions

    def to_dict(self) -> dict[str, Any]:
        """Return the key in JSON types."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, data: object, where: str) -> ItemKey:
        """Return the key that ``to_dict`` wrote; a pair is one of an earlier version."""
        if isinstance(data, dict) and {name: type(data[name]) for name in data} == _KEY_TYPES:
            return cls(**data)  # there are thousands in a run, most of them just as they should be
        if isinstance(data, list) and [type(part) for part in data] == [str, int]:
            return cls(*data)
        table = json_table(data, where)
        return cls(
            table.text("competition"),
            table.whole("seed"),
            table.text("agent", ""),
            table.text("conditions", ""),
        )


@dataclass(frozen=True)
class Result:
    """What became of one competition with one seed."""

    competition: str
    seed: int
    status: Status
    grade: Grade | None = None
    error: str | None = None  # why there is no grade
    agent: str = ""
    conditions: str = ""
    agent_seconds: float | None = None
    run: str | None = None  # the folder of the attempt
    format_checks: int = 0
    snapshots: tuple[Snapshot, ...] = ()
    fingerprint: str | None = None  # of everything that decided the attempt
    model_use: ModelUse | None = None  # None: neither a gateway nor the agent counted anything
    lost_usd: float | None = 0.0  # on models, in tries that do not count; None: not known
    gpus: int = 0  # that the attempt had
    extra: Mapping[str, Any] = field(default_factory=dict)  # what hooks add
    attempt: AttemptFacts = field(default_factory=AttemptFacts)

    @property
    def ran(self) -> bool:
        """Tell whether an agent ran at all, whatever came of it."""
        return self.status in ("graded", "failed") or self.run is not None

    @property
    def key(self) -> ItemKey:
        """Return what identifies a result."""
        return ItemKey(self.competition, self.seed, self.agent, self.conditions)

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

    @property
    def failure(self) -> FailureKind | None:
        """Return what kind of failure it is that there is no score; None for what has not run."""
        if self.status == "error":
            return "benchmark"
        if self.status != "failed":
            return None
        return failure_kind(self.attempt, self.grade is not None and self.grade.submission_exists)

    def to_dict(self) -> dict[str, Any]:
        """Return the result in JSON types."""
        return {
            "competition": self.competition,
            "seed": self.seed,
            "agent": self.agent,
            "conditions": self.conditions,
            "outcome": self.status,
            "grade": None if self.grade is None else self.grade.to_dict(),
            "error": self.error,
            "agent_seconds": self.agent_seconds,
            "run": self.run,
            "format_checks": self.format_checks,
            "snapshots": [snapshot.to_dict() for snapshot in self.snapshots],
            "fingerprint": self.fingerprint,
            "model_use": None if self.model_use is None else self.model_use.to_dict(),
            "lost_usd": self.lost_usd,
            "gpus": self.gpus,
            "extra": dict(self.extra),
            "failure": self.failure,
            "attempt": self.attempt.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: object, where: str = "a result") -> Result:
        """Return the result that ``to_dict`` wrote; anything else is an error naming *where*."""
        table = json_table(data, where)
        grade = table.table("grade", None)
        competition = table.text("competition")
        status: Status = table.choice("outcome", STATUSES)
        result = cls(
            competition=competition,
            seed=table.whole("seed"),
            status=status,
            grade=None if grade is None else Grade.from_table(grade, competition),
            error=table.text("error", None),
            agent=table.text("agent", ""),
            conditions=table.text("conditions", ""),
            agent_seconds=table.number("agent_seconds", None),
            run=table.text("run", None),
            format_checks=table.whole("format_checks", 0),
            snapshots=tuple(_snapshot(each) for each in table.tables("snapshots")),
            fingerprint=table.text("fingerprint", None),
            model_use=_model_use(data, table),
            lost_usd=_lost_usd(data, table),
            gpus=table.whole("gpus", 0),
            extra=_extra(data, table),
            attempt=AttemptFacts.from_table(table.table("attempt", None)),
        )
        if (status == "graded") != result.valid:
            raise table.error("outcome", f"is {status!r}, which the grade contradicts")
        return result


def complete(results: Iterable[Result], expected: Iterable[ItemKey] = ()) -> tuple[Result, ...]:
    """Return one result per key, adding a missing one for each that is expected.

    Of several results with the same key the last one counts that is not itself missing.
    """
    found: dict[ItemKey, Result] = {key: never_ran(key) for key in expected}
    for result in results:
        if result.key not in found or result.status != "missing":
            found[result.key] = result
        elif found[result.key].status == "missing":
            found[result.key] = result  # it may know why it is missing
    return tuple(found.values())


def never_ran(key: ItemKey) -> Result:
    """Return the result of an item that was expected and of which nothing is known."""
    return Result(
        key.competition,
        key.seed,
        "missing",
        error="never ran",
        agent=key.agent,
        conditions=key.conditions,
    )


def blocks_of(results: Iterable[Result]) -> list[list[Result]]:
    """Return the results of each agent, and of each of its special conditions, by themselves."""
    blocks: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        blocks.setdefault((result.agent, result.conditions), []).append(result)
    return list(blocks.values())


class OfBlock(Protocol):
    """What belongs to an agent under some conditions: a result, or a rate."""

    @property
    def agent(self) -> str:
        """Return the agent's name."""

    @property
    def conditions(self) -> str:
        """Return what is special about the conditions."""


def block_name(member: OfBlock) -> str:
    """Return what a block is called, by one of its results or rates."""
    agent = member.agent or "no name"
    return f"{agent} ({member.conditions})" if member.conditions else agent


def named(member: OfBlock, name: str, *, several: bool) -> str:
    """Return a name, with its block before it where there are several."""
    return f"{block_name(member)}: {name}" if several else name


def _model_use(data: object, table: Table) -> ModelUse | None:
    """Return the figures of models, read from the data: there, null is what nobody knows."""
    if table.table("model_use", None) is None or not isinstance(data, Mapping):
        return None
    try:
        return ModelUse.from_dict(data["model_use"])
    except ValueError as problem:
        raise table.error("model_use", str(problem)) from None


def _lost_usd(data: object, table: Table) -> float | None:
    if isinstance(data, Mapping) and "lost_usd" in data and data["lost_usd"] is None:
        return None
    lost = table.number("lost_usd", 0.0)
    if lost < 0:
        raise table.error("lost_usd", f"must be zero or more, given: {lost}")
    return lost


def extra_facts(result: Result) -> Iterator[tuple[str, str]]:
    """Yield what hooks have added to an attempt, as names and values on one line each."""
    for key, value in list(result.extra.items())[:SHOWN_EXTRA]:
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        yield one_line(str(key))[:EXTRA_LETTERS], one_line(text)[:EXTRA_LETTERS]


def _extra(data: object, table: Table) -> Mapping[str, Any]:
    """Return what hooks added, as they added it, null included."""
    has_any = table.table("extra", None) is not None and isinstance(data, Mapping)
    return dict(data["extra"]) if has_any and isinstance(data, Mapping) else {}


def _snapshot(table: Table) -> Snapshot:
    medal = table.choice("medal", tuple(str(medal) for medal in Medal))
    return Snapshot(
        seconds=table.number("seconds"),
        sha256=table.text("sha256"),
        bytes=table.whole("bytes"),
        score=table.number("score", None),
        medal=Medal[medal.upper()],
        above_median=table.flag("above_median", False),
        percentile=table.number("percentile", None),
        problem=table.text("problem", None),
    )
