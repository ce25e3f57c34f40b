"""All that can be known to go wrong before the first agent starts, looked at in one go."""

from __future__ import annotations

import pytest

from pytest_mlebench._problems import Problems, Remedy, Without
from pytest_mlebench.agent import Agent, uncounted_keys
from pytest_mlebench.errors import ConfigError, ConfigErrors, HostTooSmall, WallMissing
from pytest_mlebench.limits import Limits
from pytest_mlebench.plugin import options
from pytest_mlebench.plugin.extent import claimed_limits, refuse_absurd, remedy_of
from pytest_mlebench.plugin.resume import examine_run
from pytest_mlebench.plugin.selection import DEFAULT_SPLIT
from pytest_mlebench.plugin.session import AT_HOME, MleSession
from pytest_mlebench.plugin.writable import (
    other_store,
    require_folder,
    require_report,
    require_room,
    store_label,
)
from pytest_mlebench.reports.gates import PREPARED, Gate

HOST_LIMITS: Remedy = {"limits": "host", "cpus": None, "memory": None, "gpus": None}
BASELINE: Remedy = {"agent": "baseline", "sandbox": None, "network": None}
DEMO: Remedy = {"split": DEFAULT_SPLIT, "competition": None}


def examine(session: MleSession, problems: Problems) -> tuple[str, ...]:
    """Note everything that cannot work, and return lines for the header."""
    settings = session.settings
    config = session.config
    _examine_reports(session, problems)
    store, label = settings.store, store_label(config)
    problems.check(lambda: require_folder(store, label), None, other_store(config))
    examine_run(session, problems)
    for gate in settings.gates:
        problems.check(lambda gate=gate: _require_selected(session, gate), None, _bar(gate))  # type: ignore[misc]  # same
    problems.check(lambda: _refuse_bars_without_runs(session), None, {"prepare": None})
    problems.check(lambda: _require_descriptions(session), None, {"description": None})
    problems.check(lambda: _require_leaderboards(session), None, {"require": None})
    problems.check(lambda: refuse_absurd(session), None, remedy_of(session))
    if not session.agent_is_overridden:
        problems.check(lambda: _refuse_shared_dollars(session), None, BASELINE)
    # every host looks around for itself
    notes = [] if session.has_hosts else examine_host(session, problems)
    return tuple(dict.fromkeys((*notes, *session.notes, *_choices(session))))


def examine_host(session: MleSession, problems: Problems) -> list[str]:
    """Note what cannot work on the host where attempts are to run; return lines for the header."""
    settings = session.settings
    notes = []
    if session.agent_is_overridden:
        problems.check(lambda: refuse_beyond_host(session), None, HOST_LIMITS)
    else:
        notes = _sandbox_notes(session, problems)
    if settings.missing == "fail" and (settings.store.is_dir() or not settings.store.exists()):
        problems.check(lambda: _refuse_unprepared(session), None, _prepared_ones(session))
    return notes


def refuse_beyond_host(session: MleSession) -> None:
    """Refuse limits that no sandbox here could give, where only a fixture knows the agent."""
    # late on purpose: only with an agent
    from pytest_mlebench.host.gpus import gpus_for
    from pytest_mlebench.host.leases import Capacity, LeaseClaim, host_capacity, require

    limits, name = claimed_limits(session), session.settings.sandbox
    if session.config.hook.pytest_mle_sandbox.get_hookimpls():
        return  # it may have another host
    try:
        if name != "docker":
            require(LeaseClaim.of(limits), host_capacity(gpus_for(limits)))
            return
    except ConfigError:
        if name == "process":
            raise
        if not _engine_answers():
            raise
    from pytest_mlebench.sandbox.docker.engine import Engine  # late on purpose: heavy

    facts = Engine().facts
    gpus = gpus_for(limits) if facts.local else ()
    require(LeaseClaim.of(limits), Capacity(facts.cpus, facts.memory_bytes, gpus, place=facts.host))


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
    notes = [*agent.notes, *filter(None, [uncounted_keys(agent)])]
    problems.check(lambda: _refuse_models(session, agent), None, {**BASELINE, "budget": None})
    try:
        for limits in distinct_limits(session):
            sandbox = session.sandbox(agent)
            notes += sandbox.preflight(agent, limits, session.network(agent))
            if isinstance(sandbox, Leasing) and sandbox.claim(limits):
                problems.check(LeaseLedger().require_writable, None)  # no option would help
    except ConfigError as error:
        several = error.errors if isinstance(error, ConfigErrors) else (error,)
        for each in several:
            problems.add(each, _remedy(each))
    return notes


def _engine_answers() -> bool:
    from pytest_mlebench.sandbox.docker.engine import Engine  # late on purpose: heavy

    try:
        _ = Engine().facts
    except ConfigError:
        return False
    return True


def _examine_reports(session: MleSession, problems: Problems) -> None:
    config = session.config
    label = options.spelled(config, "report")
    named = {config.invocation_params.dir / name: name for name in options.values(config, "report")}
    for path in session.settings.reports:
        remedy = {"report": Without.of(named.get(path, str(path)))}
        problems.check(lambda path=path: require_report(path, label), None, remedy)  # type: ignore[misc]  # bound now


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
        wanted = options.written(session.config, "require", settings.require)
        raise ConfigError(
            f"{wanted} cannot be reached in {', '.join(bare[:3])}"
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
    """Return what would work instead of a bar that nothing could reach: to leave it out."""
    return {"fail-under": Without.of(gate.given.partition("=")[2]), "baseline": None}


def _refuse_unprepared(session: MleSession) -> None:
    settings = session.settings
    competitions = [session.registry.load(i) for i in settings.ids]
    if settings.prepare != "never":
        from pytest_mlebench.store.bulk import preflight  # late on purpose: heavy

        preflight(competitions, session.store)
        if settings.store.exists() and any(session.store.find(one) is None for one in competitions):
            require_room(settings.store, store_label(session.config), settings.store)
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
