"""Which competitions and seeds a test runs on: the marker's, else the options'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_mlebench._units import parse_count
from pytest_mlebench.errors import ConfigError, did_you_mean
from pytest_mlebench.grade import parse_requirement
from pytest_mlebench.plugin import options
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
        splits=_names(values.get("split")),
        competitions=_names(values.get("competition")),
        seeds=None if "seeds" not in values else seeds_from(values["seeds"], f"{where}: seeds"),
        require=None if require is None else parse_requirement(require, f"{where}: require"),
        limits=values.get("limits") or {},
    )


def registry(config: pytest.Config) -> Registry:
    """Return the competitions of this session: built in, of the ini file, of the hook."""
    if _REGISTRY not in config.stash:
        folders = list(config.getini(options.COMPETITIONS) or ())
        for more in config.hook.pytest_mle_competitions(config=config):
            folders += more
        config.stash[_REGISTRY] = Registry(dict.fromkeys(folders))
    return config.stash[_REGISTRY]


def selected(config: pytest.Config) -> tuple[str, ...]:
    """Return the ids that the options select."""
    ids = options.given(config, "competition")
    return registry(config).select(chosen_splits(config), ids)


def chosen_splits(config: pytest.Config) -> tuple[str, ...]:
    """Return the splits that the options name; the default only where they name nothing."""
    named = _names(options.given(config, "split"))
    if not named and not options.given(config, "competition"):
        return (DEFAULT_SPLIT,)
    return named


def seeds_from(value: object, option: str) -> int:
    """Return a number of seeds, at least one."""
    count = parse_count(value, option)
    if count < 1:
        raise ConfigError(f"{option} must be at least 1, given: {value}")
    return count


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Give a test its competitions and seeds."""
    config = metafunc.config
    try:
        mark = marked(metafunc.definition)
        if mark.splits or mark.competitions:
            ids = registry(config).select(mark.splits, mark.competitions)
        elif options.given(config, "agent"):
            ids = selected(config)
        else:
            ids = registry(config).select((DEFAULT_SPLIT,))
        seeds = mark.seeds or seeds_from(options.given(config, "seeds"), "--mle-seeds")
    except ConfigError as error:
        raise pytest.Collector.CollectError(str(error)) from None
    pairs = [(competition, seed) for competition in ids for seed in range(seeds)]
    names = ("mle_competition", "mle_seed")
    wanted = [name for name in names if name in metafunc.fixturenames]
    if wanted == ["mle_competition"]:
        metafunc.parametrize("mle_competition", ids, ids=ids, indirect=True)
        return
    labels = [f"{competition}-seed{seed}" for competition, seed in pairs]
    metafunc.parametrize(names, pairs, ids=labels, indirect=True)


def _names(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    values: Sequence[Any] = value.split(",") if isinstance(value, str) else value  # type: ignore[assignment]
    return tuple(name.strip() for name in values if name.strip())
