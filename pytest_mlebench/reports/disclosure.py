"""The disclosure: under which conditions the numbers of a report came about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from pytest_mlebench.reports.json_table import json_table


@dataclass(frozen=True)
class Disclosure:
    """What a reader must know to judge a report; whatever is not known stays empty."""

    agent: str | None = None  # of several, all
    agent_version: str | None = None
    fingerprint: str | None = None  # of the agent: its name, command, files, image, variables
    image: str | None = None  # the digest
    sandbox: str | None = None
    walls: str | None = None  # what kept agents in, by name; of several hosts, all
    network: str | None = None
    models: str | None = None  # that the agent reached through the gateway
    budget: str | None = None  # of an attempt, for them
    gpu_hour_usd: float | None = None  # what an hour of a GPU is reckoned with
    description: str | None = None  # whose description the agent was given
    limits: Mapping[str, str] = field(default_factory=dict)  # as Limits.describe() has them
    deviations: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # (is, standard)
    hardware: Mapping[str, str] = field(default_factory=dict)  # of several hosts, all values
    hosts: Mapping[str, str] = field(default_factory=dict)  # of several: what each is made of
    gpus: tuple[str, ...] = ()  # each set of GPUs that attempts had: "1 x NVIDIA A10 (24GB)"
    attempts: Mapping[str, int] = field(default_factory=dict)  # how many were made, repeated, …
    benchmark: str | None = None  # the version of the benchmark's data and graders
    llms: tuple[str, ...] = ()  # this and the next three: by the author's own word
    url: str | None = None
    paper: str | None = None
    statement: str | None = None
    splits: tuple[str, ...] = ()
    competitions: tuple[str, ...] = ()  # asked for one by one
    seeds: int | None = None
    require: str | None = None
    plugin_version: str | None = None
    data: Mapping[str, str] = field(default_factory=dict)  # competition: how it was verified
    started: str | None = None
    finished: str | None = None
    notes: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)  # what hooks add

    def to_dict(self) -> dict[str, Any]:
        """Return the disclosure in JSON types."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, data: object, where: str) -> Disclosure:
        """Return what ``to_dict`` wrote; keys of later versions are passed over."""
        table = json_table(data, where)
        values: dict[str, Any] = {}
        for name in (item.name for item in fields(cls)):
            if name in _TUPLES:
                values[name] = table.texts(name, ())
            elif name in _TABLES:
                inner = table.table(name, None)
                values[name] = {} if inner is None else inner.take_all()
            elif name == "gpu_hour_usd":
                values[name] = table.number(name, None)
            elif name == "seeds":
                seeds = table.number(name, None)
                values[name] = None if seeds is None else int(seeds)
            else:
                values[name] = table.text(name, None)
        values["deviations"] = _pairs(values["deviations"], where)
        values["attempts"] = _counts(values["attempts"], f"{where}: attempts")
        return cls(**values)

    def _reach(self, network: str) -> str:
        """Return what the agent could reach."""
        if self.models is None:
            return network
        if network == "none":
            return "none; through the gateway its models, and nothing else"
        return f"{network}; its models through the gateway"

    def lines(self) -> list[str]:
        """Return the disclosure for a person, a line each, without what is not known."""
        shown = {
            "agent": " ".join(filter(None, (self.agent, self.agent_version))),
            "fingerprint": self.fingerprint,
            "image": self.image,
            "sandbox": self.sandbox,
            "walls": self.walls,
            "network": self.network and self._reach(self.network),
            "models": self.models,
            "budget": self.budget,
            "description": self.description,
            "limits": _join(self.limits),
            "not standard": "; ".join(
                f"{key} {value} instead of {standard}"
                for key, (value, standard) in self.deviations.items()
            ),
            "hardware": "" if len(self.hosts) > 1 else _join(self.hardware),
            "hosts": "; ".join(f"{name}: {text}" for name, text in self.hosts.items()),
            "GPUs": ", ".join(self.gpus),
            "attempts": _join({f"{key}:": number for key, number in self.attempts.items()}),
            "benchmark": self.benchmark,
            "splits": ", ".join(self.splits),
            "competitions": ", ".join(self.competitions),
            "seeds": None if self.seeds is None else str(self.seeds),
            "require": self.require,
            "plugin": self.plugin_version and f"pytest-mlebench {self.plugin_version}",
            "data": _join(_tally(self.data)),
            "started": self.started,
            "finished": self.finished,
            "notes": "; ".join(self.notes),
            **{key: str(value) for key, value in self.extra.items()},
        }
        return [f"{key}: {value}" for key, value in shown.items() if value]


def host_name(machine: str | None, host: str | None) -> str:
    """Return what a host is called: as in hosts.toml, and by itself where that is another name."""
    if machine is None or host is None or machine == host:
        return machine or host or "?"
    return f"{machine} ({host})"


def host_text(hardware: Mapping[str, str], gpus: Iterable[str]) -> str:
    """Return in a line what a host is made of."""
    return ", ".join(filter(None, (_join(hardware), *gpus)))


def _pairs(deviations: Mapping[str, Any], where: str) -> dict[str, tuple[str, str]]:
    table = json_table(deviations, f"{where}: deviations")
    pairs = {key: table.texts(key) for key in deviations}
    for key, pair in pairs.items():
        if len(pair) != 2:
            raise table.error(key, f"must be [value, standard], given: {list(pair)}")
    return {key: (value, standard) for key, (value, standard) in pairs.items()}


def _counts(numbers: Mapping[str, Any], where: str) -> dict[str, int]:
    table = json_table(numbers, where)
    return {key: int(table.number(key)) for key in numbers}


def _join(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in facts.items())


def _tally(data: Mapping[str, str]) -> dict[str, int]:
    values = list(data.values())
    return {f"{value}:": values.count(value) for value in dict.fromkeys(values)}


_TUPLES = {"splits", "competitions", "notes", "gpus", "llms"}
_TABLES = {"limits", "deviations", "hardware", "hosts", "data", "extra", "attempts"}
