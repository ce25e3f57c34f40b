"""All that can be known to go wrong before the first agent starts, looked at in one go."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from pytest_mlebench._problems import Problems, Remedy
from pytest_mlebench._units import show_duration
from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError, ConfigErrors, HostTooSmall, WallMissing
from pytest_mlebench.limits import Limits
from pytest_mlebench.plugin import options
from pytest_mlebench.plugin.selection import DEFAULT_SPLIT
from pytest_mlebench.plugin.session import AT_HOME, MleSession
from pytest_mlebench.reports.gates import PREPARED, Gate

# What nobody means: the whole benchmark with three seeds is 5,400 hours, with sixteen 28,800.
MAX_HOURS = 100_000
MAX_ATTEMPTS = 100_000  # more items than pytest can usefully collect

HOST_LIMITS: Remedy = {"limits": "host", "cpus": None, "memory": None, "gpus": None}
BASELINE: Remedy = {"agent": "baseline", "sandbox": None, "network": None}
DEMO: Remedy = {"split": DEFAULT_SPLIT, "competition": None}


def examine(session: MleSession, problems: Problems) -> tuple[str, ...]:
    """Note everything that cannot work, and return lines for the header."""
    settings = session.settings
    for path in settings.reports:
        problems.check(lambda path=path: _require_writable(path), None, {"report": None})  # type: ignore[misc]  # bound now
    problems.check(lambda: _require_folder(settings.store), None, {"data-dir": None})
    for gate in settings.gates:
        problems.check(lambda gate=gate: _require_selected(session, gate), None, _bar(gate))  # type: ignore[misc]  # same
    problems.check(lambda: _refuse_bars_without_runs(session), None, {"prepare": None})
    problems.check(lambda: _require_descriptions(session), None, {"description": None})
    problems.check(lambda: _require_leaderboards(session), None, {"require": None})
    if not session.agent_is_overridden:
        problems.check(lambda: _refuse_absurd(session), None, {"seeds": "1"})
        problems.check(lambda: _refuse_shared_dollars(session), None, BASELINE)
    elsewhere = settings.hosts is not None  # every host looks around for itself
    notes = [] if elsewhere else examine_host(session, problems)
    return tuple(dict.fromkeys((*notes, *session.notes, *_choices(session))))


def examine_host(session: MleSession, problems: Problems) -> list[str]:
    """Note what cannot work on the host where attempts are to run; return lines for the header."""
    settings = session.settings
    notes = [] if session.agent_is_overridden else _sandbox_notes(session, problems)
    if settings.missing == "fail" and (settings.store.is_dir() or not settings.store.exists()):
        problems.check(lambda: _refuse_unprepared(session), None, _prepared_ones(session))
    return notes


def distinct_limits(session: MleSession) -> list[Limits]:
    """Return the limits of the agent on the selected competitions, each once."""
    competitions = (session.registry.load(i) for i in session.settings.ids)
    return list(dict.fromkeys(session.limits(c, session.agent) for c in competitions))


def _refuse_shared_dollars(session: MleSession) -> None:
    """Refuse dollars of the whole run where nobody sees them all."""
    agent = session.agent
    if agent.budget.session_usd is not None and _has_other_hosts(session):
        raise ConfigError(
            f"session_usd of agent {agent.name!r} bounds the dollars of the whole run, and workers "
            "that --tx starts on other hosts do not see what it has spent: name the hosts with "
            "--mle-hosts, bound every attempt by usd instead, or run on one host"
        )


def _sandbox_notes(session: MleSession, problems: Problems) -> list[str]:
    from pytest_mlebench.host.leases import (  # late on purpose: only with an agent
        LeaseLedger,
        Leasing,
    )

    agent = session.agent
    notes = list(agent.notes)
    problems.check(lambda: _refuse_models(session, agent), None, {**BASELINE, "budget": None})
    try:
        for limits in distinct_limits(session):
            sandbox = session.sandbox(agent)
            notes += sandbox.preflight(agent, limits, session.network(agent))
            if isinstance(sandbox, Leasing) and sandbox.claim(limits):
                problems.check(LeaseLedger().require_writable, None)
    except ConfigError as error:
        several = error.errors if isinstance(error, ConfigErrors) else (error,)
        for each in several:
            problems.add(each, _remedy(each))
        if not all(isinstance(each, HostTooSmall) for each in several) and _has_standard(session):
            problems.also(HOST_LIMITS)  # of this host the sandbox may not have come to speak
    return notes


def _remedy(error: ConfigError) -> Remedy:
    """Return what would make a sandbox do, by what it complains of."""
    if isinstance(error, WallMissing):
        return {"require-walls": None}
    return HOST_LIMITS if isinstance(error, HostTooSmall) else BASELINE


def _refuse_models(session: MleSession, agent: Agent) -> None:
    """Refuse a budget without models, and models that the gateway could not serve."""
    budget = session.budget(agent)
    if agent.models:
        # late on purpose: only for agents with models
        from pytest_mlebench.gateway.readiness import check_ready

        check_ready(agent, budget)


def _has_other_hosts(session: MleSession) -> bool:
    """Tell whether xdist itself starts workers on hosts that do not see the run's folder."""
    specs = getattr(session.config.option, "tx", None) or ()
    places = (spec.rpartition("*")[2] for spec in specs)
    return any(not place.startswith("popen") for place in places)


def _has_standard(session: MleSession) -> bool:
    kinds = {session.registry.load(i).complexity for i in session.settings.ids}
    return not kinds <= set(AT_HOME)


def _choices(session: MleSession) -> list[str]:
    """Return what the options change about the data and the limits."""
    settings = session.settings
    notes = [] if settings.verify else ["datasets were not verified"]
    if settings.whose_limits == "host" and _has_standard(session):
        notes.append("limits of this host, not MLE-bench's standard")
    words = {"kaggle": "original descriptions", "obfuscated": "obfuscated descriptions"}
    chosen = words.get(settings.description)
    return notes if chosen is None else [*notes, chosen]


def _refuse_absurd(session: MleSession) -> None:
    """Refuse a budget of seeds, competitions and hours that is a slip of the finger."""
    settings, seeds = session.settings, session.settings.seeds
    attempts = len(settings.ids) * seeds
    seconds = sum(
        session.limits(session.registry.load(i), session.agent).time_seconds for i in settings.ids
    )
    hours = seconds * seeds / 3600
    if attempts > MAX_ATTEMPTS or hours > MAX_HOURS:
        raise ConfigError(
            f"--mle-seeds={seeds} on {len(settings.ids)} competitions is {attempts:,} attempts of "
            f"up to {show_duration(seconds / max(1, len(settings.ids)))} each, {hours:,.0f} hours "
            f"in all: give fewer seeds (3 are usual), or a shorter --mle-time-limit"
        )


def _refuse_bars_without_runs(session: MleSession) -> None:
    settings = session.settings
    gates = [*settings.gates, *(() if settings.spending_gate is None else [settings.spending_gate])]
    if settings.prepare == "only" and gates:
        raise ConfigError(
            f"{gates[0].given} has nothing to judge with --mle-prepare=only, "
            "which runs no agent: leave one of them out"
        )


def _require_descriptions(session: MleSession) -> None:
    """Refuse a competition that lacks the description that was asked for."""
    if session.settings.description == "obfuscated":
        for name in session.settings.ids:
            _ = session.registry.load(name).obfuscated_description  # one that has none ends here


def _require_leaderboards(session: MleSession) -> None:
    """Refuse to require a medal where none can be earned."""
    settings = session.settings
    if settings.require == "pass" or not _runs_the_suite(session):
        return
    competitions = (session.registry.load(i) for i in settings.ids)
    bare = [each.id for each in competitions if not each.leaderboard.has_medals]
    if bare:
        raise ConfigError(
            f"--mle-require={settings.require} cannot be reached in {', '.join(bare[:3])}"
            f"{', …' if len(bare) > 3 else ''}, which has no leaderboard and gives no medals: "
            "use --mle-require=pass, or give it a [leaderboard] in its competition.toml"
        )


def _require_selected(session: MleSession, gate: Gate) -> None:
    """Refuse a bar for a split that is not selected, or not as a whole.

    Tests of the user's own choose their competitions themselves, which shows when they are
    collected.
    """
    if gate.split in (None, PREPARED) or not _runs_the_suite(session):
        return
    wanted = set(session.registry.split(gate.split or ""))
    there = wanted & set(session.settings.ids)
    if there != wanted:
        part = f"only {len(there)} of its {len(wanted)} competitions are" if there else "it is not"
        raise ConfigError(
            f"{gate.given} judges the split {gate.split}, but {part} selected: "
            f"add --mle-split={gate.split}, or leave the bar out"
        )


def _runs_the_suite(session: MleSession) -> bool:
    config = session.config
    typed = config.args_source is pytest.Config.ArgsSource.ARGS and bool(session.settings.tests)
    return not typed and bool(options.on_command_line(config))


def _bar(gate: Gate) -> Remedy:
    """Return what would work instead of a bar: the split that it is about."""
    return {"fail-under": None, "baseline": None} if gate.split else {}


def _require_writable(path: Path) -> None:
    """Refuse a report's path that could not be written after the last agent."""
    if path.is_dir():
        raise ConfigError(f"--mle-report names a folder, not a file: {path}")
    if path.exists() and not os.access(path, os.W_OK):
        raise ConfigError(f"--mle-report names a file that cannot be written: {path}")
    _require_room(path.parent, "--mle-report", path)


def _require_folder(store: Path) -> None:
    """Refuse a dataset store that is a file or could not be made."""
    if store.exists() and not store.is_dir():
        raise ConfigError(f"--mle-data-dir must be a folder, given: {store}")
    if not store.exists():
        _require_room(store.parent, "--mle-data-dir", store)


def _require_room(folder: Path, option: str, given: Path) -> None:
    """Refuse a folder that is not there and cannot be made, or in which nothing can be made."""
    above = folder.absolute()
    while not above.exists() and above != above.parent:
        above = above.parent
    if not above.is_dir():
        raise ConfigError(f"{option} is below a file, {above}, given: {given}")
    try:
        tempfile.TemporaryFile(dir=above).close()  # permissions do not tell it all: /proc, quotas
    except OSError as error:
        raise ConfigError(
            f"{option} is in a folder that cannot be written, {above} ({error.strerror}), "
            f"given: {given}: choose another"
        ) from None


def _refuse_unprepared(session: MleSession) -> None:
    settings = session.settings
    competitions = [session.registry.load(i) for i in settings.ids]
    if settings.prepare != "never":
        from pytest_mlebench.store.bulk import preflight  # late on purpose: heavy

        preflight(competitions, session.store)
        if settings.store.exists() and any(session.store.find(one) is None for one in competitions):
            _require_room(settings.store, "--mle-data-dir", settings.store)
        return
    lost = [each.id for each in competitions if session.store.find(each) is None]
    if lost:
        raise ConfigError(
            f"{len(lost)} of {len(settings.ids)} competitions are not prepared in "
            f"{settings.store}: {', '.join(lost[:5])}{', …' if len(lost) > 5 else ''}; "
            f"prepare them with --mle-prepare=auto, or pass over them with --mle-missing=skip"
        )


def _prepared_ones(session: MleSession) -> Remedy:
    """Return the selection that works where some datasets cannot be had: those that are there."""
    competitions = [session.registry.load(i) for i in session.settings.ids]
    if any(session.store.find(each) is not None for each in competitions):
        return {"prepare": "never", "missing": "skip"}
    return {**DEMO, "prepare": None, "fail-under": None, "baseline": None}
