"""What a report keeps of an attempt beside its grade: how it ended, where it ran, what it used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pytest_mlebench._toml import Table

FailureKind = Literal[
    "no submission", "format", "crash", "time", "memory", "disk", "processes", "benchmark"
]
FAILURE_KINDS: tuple[FailureKind, ...] = get_args(FailureKind)
MEANINGS: dict[FailureKind, str] = {
    "no submission": "the agent ended and left nothing",
    "format": "what it left could not be graded",
    "crash": "it ended with an error and left nothing",
    "time": "it ran out of time and left nothing",
    "memory": "it ran out of memory and left nothing",
    "disk": "it wrote more than it may and left nothing",
    "processes": "it started more processes than it may and left nothing",
    "benchmark": "the benchmark's own fault, not the agent's",
}

_BY_LIMIT: dict[str, FailureKind] = {
    "time-limit": "time",
    "memory-limit": "memory",
    "disk-limit": "disk",
    "process-limit": "processes",
}


@dataclass(frozen=True)
class AttemptFacts:
    """How an attempt ended, where it ran and what it used; what is not known stays empty."""

    ending: str | None = None  # as Ending.reason has it
    exit_code: int | None = None
    host: str | None = None
    gpus: tuple[str, ...] = ()
    data_sum: str | None = None  # of its prepared dataset
    time_limit: float | None = None  # seconds
    memory_limit: int | None = None  # bytes
    peak_memory: int | None = None  # bytes
    cpu_seconds: float | None = None
    egress: Mapping[str, int] = field(default_factory=dict)  # allowed, refused, failed: requests
    refused_hosts: Mapping[str, int] = field(default_factory=dict)  # the most wanted ones: requests
    submission_head: tuple[str, ...] = ()  # its first lines, without secrets

    def to_dict(self) -> dict[str, Any]:
        """Return the facts in JSON types."""
        return vars(self) | {
            "gpus": list(self.gpus),
            "egress": dict(self.egress),
            "refused_hosts": dict(self.refused_hosts),
            "submission_head": list(self.submission_head),
        }

    @classmethod
    def from_table(cls, table: Table | None) -> AttemptFacts:
        """Return what ``to_dict`` wrote; a report of an earlier version knows nothing of it."""
        if table is None:
            return cls()
        egress = table.table("egress", None)
        refused = table.table("refused_hosts", None)
        return cls(
            ending=table.text("ending", None),
            exit_code=_whole(table, "exit_code"),
            host=table.text("host", None),
            gpus=table.texts("gpus", ()),
            data_sum=table.text("data_sum", None),
            time_limit=table.number("time_limit", None),
            memory_limit=_whole(table, "memory_limit"),
            peak_memory=_whole(table, "peak_memory"),
            cpu_seconds=table.number("cpu_seconds", None),
            egress={} if egress is None else _counts(egress.take_all()),
            refused_hosts={} if refused is None else _numbers(refused.take_all()),
            submission_head=table.texts("submission_head", ()),
        )


def failure_kind(facts: AttemptFacts, submission_exists: bool) -> FailureKind:
    """Return why an attempt that is the agent's own failure has no score."""
    if submission_exists:
        return "format"
    if facts.ending in _BY_LIMIT:
        return _BY_LIMIT[facts.ending]
    return "crash" if facts.exit_code else "no submission"


def egress_counts(details: Mapping[str, Any]) -> dict[str, int]:
    """Return how many requests to the outside were let through, refused, and failed."""
    summary = details.get("egress")
    return _counts(summary) if isinstance(summary, Mapping) else {}


def refused_hosts(details: Mapping[str, Any]) -> dict[str, int]:
    """Return the hosts that were refused most often, with the number of requests."""
    summary = details.get("egress")
    hosts = summary.get("refused_hosts") if isinstance(summary, Mapping) else None
    return _numbers(hosts) if isinstance(hosts, Mapping) else {}


def _numbers(data: Mapping[str, Any]) -> dict[str, int]:
    return {key: int(count) for key, count in data.items() if isinstance(count, int | float)}


def _counts(data: Mapping[str, Any]) -> dict[str, int]:
    wanted = ("allowed", "refused", "failed")
    return _numbers({key: data[key] for key in wanted if key in data})


def _whole(table: Table, key: str) -> int | None:
    value = table.number(key, None)
    return None if value is None else int(value)
