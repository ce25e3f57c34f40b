"""How much a session is asked to run: attempts and hours that nobody means are refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from pytest_mlebench._problems import Remedy
from pytest_mlebench._units import show_duration
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.limits import STANDARD, Limits
from pytest_mlebench.plugin import options
from pytest_mlebench.plugin.selection import marked
from pytest_mlebench.plugin.session import MleSession

# What nobody means: the whole benchmark with three seeds is 5,400 hours, with sixteen 28,800.
MAX_HOURS = 100_000
MAX_ATTEMPTS = 100_000  # more items than pytest can usefully collect

FEWER: Remedy = {"seeds": "1"}
SHORTER: Remedy = {"seeds": "1", "time-limit": None}


def refuse_absurd(session: MleSession) -> None:
    """Refuse a budget of seeds, competitions and hours that is a slip of the finger."""
    settings, seeds = session.settings, session.settings.seeds
    count = len(settings.ids)
    seconds = _seconds(session, settings.ids)
    hours = seconds * seeds / 3600
    if _is_absurd(count * seeds, hours):
        config = session.config
        each = f" of up to {show_duration(seconds / count)} each, {hours:,.0f} hours in all"
        raise ConfigError(
            f"{options.written(config, 'seeds', seeds)} on {count} competitions is "
            f"{count * seeds:,} attempts{each if hours else ''}: give fewer seeds (3 are usual), "
            f"or a shorter {options.spelled(config, 'time-limit')}"
        )


def remedy_of(session: MleSession) -> Remedy:
    """Return what would be meant instead: one seed, and the usual time where that is not enough."""
    ids = session.settings.ids
    return SHORTER if _is_absurd(len(ids), _seconds(session, ids) / 3600) else FEWER


def add_items(session: MleSession, node: pytest.Item, ids: Sequence[str], seeds: int) -> None:
    """Count what a test is going to run; refuse the one with which a session has too much."""
    session.attempts += len(ids) * seeds
    session.hours += _seconds(session, ids, node) * seeds / 3600
    if _is_absurd(session.attempts, session.hours):
        hours = f" of {session.hours:,.0f} hours in all" if session.hours else ""
        raise ConfigError(
            f"with {node.name}, {seeds} seeds on {len(ids)} competitions, this session has "
            f"{session.attempts:,} attempts{hours}: give fewer seeds (3 are usual), fewer "
            "competitions or less time"
        )


def _is_absurd(attempts: int, hours: float) -> bool:
    return attempts > MAX_ATTEMPTS or hours > MAX_HOURS


def _seconds(session: MleSession, ids: Iterable[str], node: pytest.Item | None = None) -> float:
    """Return how long one seed on some competitions may take; as little as is certain."""
    if not session.agent_is_overridden:
        loaded = (session.registry.load(each) for each in ids)
        return sum(session.limits(each, session.agent, node).time_seconds for each in loaded)
    wishes = {} if node is None else marked(node).limits
    name = "a test" if node is None else node.name
    none = Limits(
        time_seconds=0
    )  # the agent of a fixture, which nobody knows yet, may ask for less
    limits = Limits.from_table(wishes, where=f"the marker of {name}", base=none)
    return session.settings.changed_limits(limits).time_seconds * len(list(ids))


def claimed_limits(session: MleSession) -> Limits:
    """Return what the options alone ask of a host, whatever the agent will be."""
    from dataclasses import replace

    return session.settings.changed_limits(replace(STANDARD, cpus=0, memory_bytes=0, gpus=0))
