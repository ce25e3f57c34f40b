"""What a test says about the competitions and seeds it runs on: its marker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_mlebench._units import parse_count
from pytest_mlebench.errors import ConfigError, did_you_mean
from pytest_mlebench.grade import parse_requirement
from pytest_mlebench.plugin import options
from pytest_mlebench.plugin.worker_link import posting_of, travelled_competitions
from pytest_mlebench.registry import Registry

DEFAULT_SPLIT = "demo"
_REGISTRY = pytest.StashKey[Registry]()


@dataclass(frozen=True)
class Marked:
    """What ``@pytest.mark.mle(...)`` says."""

    splits: tuple[str, ...] = ()
    competitions: tuple[str, ...] = ()
    seeds: int | None = None
    require: str | None = None
    limits: Mapping[str, object] = field(default_factory=dict)

    @property
    def conditions(self) -> str:
        """Return what the marker changes about an attempt, as people write it."""
        return ", ".join(f"{key} {value}" for key, value in sorted(self.limits.items()))


def marked(node: pytest.Item | pytest.Function | Any) -> Marked:
    """Return what the nearest marker of a node says, or refuse it."""
    marker = node.get_closest_marker("mle")
    if marker is None:
        return Marked()
    where = f"@pytest.mark.mle of {node.nodeid}"
    known = ("split", "competition", "seeds", "require", "limits")
    if marker.args:
        raise ConfigError(f"{where} takes keywords only, given: {marker.args[0]!r}")
    for key in marker.kwargs:
        if key not in known:
            raise ConfigError(f"{where} has no keyword {key!r}{did_you_mean(key, known)}")
    values = marker.kwargs
    require = values.get("require")
    return Marked(
        splits=names_in(values.get("split")),
        competitions=names_in(values.get("competition")),
        seeds=None if "seeds" not in values else seeds_from(values["seeds"], f"{where}: seeds"),
        require=None if require is None else parse_requirement(require, f"{where}: require"),
        limits=values.get("limits") or {},
    )


def registry(config: pytest.Config) -> Registry:
    """Return the competitions of this session: built in, of the ini file, of the hook."""
    if _REGISTRY not in config.stash:
        # what is refused is refused once: then there are those that come with the package
        config.stash[_REGISTRY] = Registry()
        posting = posting_of(config)
        folders = _own(config) if posting is None else travelled_competitions(config, posting)
        config.stash[_REGISTRY] = Registry(dict.fromkeys(folders))
    return config.stash[_REGISTRY]


def _own(config: pytest.Config) -> list[Path]:
    folders = list(config.getini(options.COMPETITIONS) or ())
    for more in config.hook.pytest_mle_competitions(config=config):
        folders += more
    return folders


def seeds_from(value: object, option: str) -> int:
    """Return a number of seeds, at least one."""
    count = parse_count(value, option)
    if count < 1:
        raise ConfigError(f"{option} must be at least 1, given: {value}")
    return count


def names_in(value: object) -> tuple[str, ...]:
    """Return the names in a list or in a text with commas."""
    if value is None:
        return ()
    values: Sequence[Any] = value.split(",") if isinstance(value, str) else value  # type: ignore[assignment]
    return tuple(name.strip() for name in values if name.strip())
