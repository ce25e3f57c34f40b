"""The plan of a run, ``run.json``: what is to run and how, so that its name is enough to resume it.

It is written when a run begins and again when a session of it is resumed; what an earlier session
expected stays expected, so that a report of a run that was killed still knows what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_mlebench._files import write_text
from pytest_mlebench._toml import Table
from pytest_mlebench.attempts.identity import Identity
from pytest_mlebench.budget import Budget
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.layout import PLAN, RunFolder
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.json_table import json_table, text_with_rows
from pytest_mlebench.reports.results import ItemKey

SCHEMA = 2
READABLE = (1, 2)  # 1 knew what is expected and the disclosure


@dataclass(frozen=True)
class Plan:
    """What a run consists of: the options as they were given, and what came of them."""

    agent: str  # as it was typed
    splits: tuple[str, ...] = ()
    competitions: tuple[str, ...] = ()  # single ones
    tests: tuple[str, ...] = ()  # paths of the user's own tests; none: the built-in suite
    seeds: int = 1
    require: str = "pass"
    gates: tuple[str, ...] = ()
    fail_over: str | None = None
    baseline: str | None = None  # the path of a report
    audit: bool = False
    fail_on: str | None = None
    limits: Mapping[str, str] = field(default_factory=dict)  # those that options changed
    whose_limits: str = "standard"  # or "host"
    network: str | None = None
    budget: Budget = field(default_factory=Budget)  # the bounds that the option sets
    transcripts: bool = False
    gpu_hour_usd: float | None = None
    snapshot_every: float | None = None  # seconds
    missing: str = "fail"
    sandbox: str = "auto"
    description: str = "ours"
    code_salt: str = ""  # what code names of competitions are made with
    verify: bool = True
    require_walls: bool = False
    identity: Identity | None = None  # None where a fixture brings the agent
    expected: tuple[ItemKey, ...] = ()
    disclosure: Disclosure = field(default_factory=Disclosure)

    def expecting(self, keys: Iterable[ItemKey]) -> Plan:
        """Return the plan with further items that are to run."""
        return replace(self, expected=tuple(dict.fromkeys((*self.expected, *keys))))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in JSON types."""
        return {
            "schema": SCHEMA,
            **{each.name: getattr(self, each.name) for each in fields(self)},
            "budget": self.budget.to_dict(),
            "identity": None if self.identity is None else dict(self.identity.facts),
            "fingerprint": None if self.identity is None else self.identity.fingerprint,
            "expected": [key.to_dict() for key in self.expected],
            "disclosure": self.disclosure.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str) -> Plan:
        """Return the plan that ``to_dict``, of this version or an earlier one, wrote."""
        disclosure = Disclosure.from_dict(data.get("disclosure"), f"{where}: disclosure")
        expected = data.get("expected")
        if not isinstance(expected, list):
            raise ConfigError(f"{where}: expected must be a list, given: {type(expected).__name__}")
        keys = tuple(
            ItemKey.from_dict(each, f"{where}: expected[{number}]")
            for number, each in enumerate(expected)
        )
        if data["schema"] == 1:
            return _of_disclosure(disclosure, keys)
        table = json_table(data, where)
        return cls(
            agent=table.text("agent"),
            splits=table.texts("splits", ()),
            competitions=table.texts("competitions", ()),
            tests=table.texts("tests", ()),
            seeds=int(table.number("seeds", 1)),
            require=table.text("require", "pass"),
            gates=table.texts("gates", ()),
            limits=_texts(table, "limits") or {},
            whose_limits=table.text("whose_limits", "standard"),
            fail_over=table.text("fail_over", None),
            baseline=table.text("baseline", None),
            audit=table.flag("audit", False),
            fail_on=table.text("fail_on", None),
            network=table.text("network", None),
            budget=_budget(table),
            transcripts=table.flag("transcripts", False),
            gpu_hour_usd=table.number("gpu_hour_usd", None),
            snapshot_every=table.number("snapshot_every", None),
            missing=table.text("missing", "fail"),
            sandbox=table.text("sandbox", "auto"),
            description=table.text("description", "ours"),
            code_salt=table.text("code_salt", ""),
            verify=table.flag("verify", True),
            require_walls=table.flag("require_walls", False),
            identity=None if (facts := _texts(table, "identity")) is None else Identity(facts),
            expected=keys,
            disclosure=disclosure,
        )


def write_plan(folder: RunFolder, plan: Plan) -> None:
    """Write ``run.json``, all of it or nothing."""
    write_text(folder.plan, text_with_rows(plan.to_dict(), "expected"))


def read_plan(folder: RunFolder) -> Plan:
    """Return the plan of a run."""
    path = folder.plan
    if not path.is_file():
        raise ConfigError(f"{folder.path}: not the folder of a run (it has no {PLAN})")
    try:
        found = path.stat()
        return _read_plan(path, found.st_ino, found.st_mtime_ns, found.st_size)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid JSON: {error}") from None


@lru_cache(maxsize=8)  # a session looks three times at the plan of a run that it resumes
def _read_plan(path: Path, _inode: int, _time: int, _size: int) -> Plan:
    """Return a plan as it was written at some time; every writing makes another file of it."""
    data = json.loads(path.read_text(encoding="utf-8"))
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema not in READABLE:
        raise ConfigError(
            f"{path}: has schema {schema!r}, this version reads {' and '.join(map(str, READABLE))}"
        )
    return Plan.from_dict(data, str(path))


def _of_disclosure(disclosure: Disclosure, expected: tuple[ItemKey, ...]) -> Plan:
    """Return the plan of a run that the first version began."""
    return Plan(
        agent=disclosure.agent or "",
        splits=disclosure.splits,
        competitions=disclosure.competitions,
        seeds=disclosure.seeds or 1,
        require=disclosure.require or "pass",
        expected=tuple(replace(key, agent=disclosure.agent or "") for key in expected),
        disclosure=disclosure,
    )


def _budget(table: Table) -> Budget:
    inner = table.table("budget", None)
    try:
        return Budget() if inner is None else Budget.from_dict(inner.take_all())
    except (TypeError, ValueError) as problem:
        raise table.error("budget", f"is damaged: {problem}") from None


def _texts(table: Table, key: str) -> dict[str, str] | None:
    inner = table.table(key, None)
    return None if inner is None else {name: str(text) for name, text in inner.take_all().items()}
