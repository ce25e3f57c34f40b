"""Which competitions a split has, of what kind they are, which leak: what rates are computed from.

They are read from the split files alone, not through the competitions, so that an old report can
be read whatever competitions are installed; and they travel inside a report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_mlebench.registry import ALIASES, BENCHMARK, SPLITS, Registry, read_split
from pytest_mlebench.reports.json_table import json_table

ALL = "all"
SELECTED = "selected"  # everything that was to run, where no split is exactly that
OTHER = "custom"  # competitions that no split names
DEMO = "demo"  # demonstrations, never part of a rate of the benchmark


@dataclass(frozen=True)
class Membership:
    """The splits that concern some competitions, and what is known of these."""

    splits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    leaky: frozenset[str] = frozenset()  # for certain or by suspicion: rates leave out both
    suspected: frozenset[str] = frozenset()  # those of the leaky ones that nobody is certain of
    categories: Mapping[str, str] = field(default_factory=dict)  # competition: what kind it is

    @classmethod
    def of(
        cls, registry: Registry, competitions: Iterable[str], named: Iterable[str] = ()
    ) -> Membership:
        """Return the splits that *competitions* touch, and those that the user *named*."""
        ids = tuple(dict.fromkeys(competitions))
        splits = {name: _ids(path) for name, path in _split_files(registry).items()}
        chosen = {name: splits[name] for name in BENCHMARK if set(splits.get(name, ())) & set(ids)}
        if all(name in chosen for name in BENCHMARK):
            chosen[ALL] = tuple(i for name in BENCHMARK for i in splits[name])
        chosen = dict(cls(chosen).including(registry, named).splits)
        for name, members in splits.items():
            unknown = set(ids) - {i for group in chosen.values() for i in group}
            if unknown & set(members):
                chosen.setdefault(name, members)
        rest = tuple(i for i in ids if not any(i in group for group in chosen.values()))
        if rest:
            chosen[OTHER] = rest
        installed = set(registry.ids())
        known = [registry.load(i) for i in ids if i in installed]
        return cls(
            chosen,
            frozenset(c.id for c in known if c.is_leaky),
            frozenset(c.id for c in known if c.is_leaky and c.is_suspected),
            {c.id: c.category for c in known},
        )

    def including(self, registry: Registry, names: Iterable[str]) -> Membership:
        """Return the same facts and further splits, such as those that a gate speaks of."""
        splits = dict(self.splits)
        for name in (ALIASES.get(name, name) for name in names):
            if members := _members(registry, name):  # a file of old may be gone
                splits.setdefault(Path(name).stem, members)
        return replace(self, splits=splits)

    def benchmark_split(self, competition: str) -> str:
        """Return the split a competition is counted in: low, medium, high, or its own."""
        for name in (*BENCHMARK, *self.splits):
            if name != ALL and competition in self.splits.get(name, ()):
                return name
        return OTHER

    def leak(self, competition: str) -> str:
        """Return ``known`` or ``suspected`` for a leak of the answers, or nothing."""
        if competition in self.suspected:
            return "suspected"
        return "known" if competition in self.leaky else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the facts in JSON types."""
        return {
            "splits": {name: list(ids) for name, ids in self.splits.items()},
            "leaky": sorted(self.leaky),
            "suspected": sorted(self.suspected),
            "categories": dict(self.categories),
        }

    @classmethod
    def from_dict(cls, data: object, where: str) -> Membership:
        """Return what ``to_dict`` wrote."""
        table = json_table(data, where)
        splits = table.table("splits")
        names = tuple(data["splits"]) if isinstance(data, Mapping) else ()
        kinds = table.table("categories", None)
        return cls(
            {name: splits.texts(name) for name in names},
            frozenset(table.texts("leaky")),
            frozenset(table.texts("suspected", ())),
            {} if kinds is None else kinds.all_texts(),
        )


def split_ids(registry: Registry, name: str) -> tuple[str, ...]:
    """Return the ids of a split by name or file, whether or not the competitions are installed."""
    return _members(registry, name) or registry.split(name)


def _members(registry: Registry, name: str) -> tuple[str, ...]:
    files = _split_files(registry)
    if name == ALL:
        return tuple(i for part in BENCHMARK for i in _ids(files[part]))
    return _ids(files.get(ALIASES.get(name, name), Path(name)))


def _split_files(registry: Registry) -> dict[str, Path]:
    files = (path for root in registry.roots for path in sorted((root / SPLITS).glob("*.txt")))
    return {path.stem: path for path in files}


def _ids(path: Path) -> tuple[str, ...]:
    return tuple(read_split(path).values()) if path.is_file() else ()
