"""Refuse, before the first agent starts, what cannot work; and open the run."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pytest_mlebench import __version__
from pytest_mlebench.agent import Agent
from pytest_mlebench.attempts.cleanup import remove_workspaces
from pytest_mlebench.attempts.identity import Identity, budget_facts
from pytest_mlebench.attempts.plan import Plan, read_plan, write_plan
from pytest_mlebench.attempts.record import Run
from pytest_mlebench.attempts.results import item_of, latest_attempts
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.limits import STANDARD, Limits
from pytest_mlebench.plugin import options
from pytest_mlebench.plugin.session import MleSession
from pytest_mlebench.reports.comparability import VERSION
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.results import ItemKey

if TYPE_CHECKING:
    from filelock import BaseFileLock


@dataclass(frozen=True)
class OpenRun:
    """A run's folder, held against other sessions, with its plan and what is done already."""

    plan: Plan
    lock: BaseFileLock
    notes: tuple[str, ...]  # lines for the header
    done: frozenset[ItemKey] = frozenset()

    def close(self) -> None:
        """Let go of the folder."""
        self.lock.release()


def open_run(session: MleSession) -> OpenRun:
    """Refuse what cannot work, then make or resume the run's folder."""
    settings = session.settings
    elsewhere = settings.hosts is not None  # every host looks around for itself
    checked = [] if elsewhere else refuse_what_cannot_work(session)
    notes = tuple(dict.fromkeys((*checked, *session.notes, *_choices(session))))
    gates = [*settings.gates, *(() if settings.spending_gate is None else [settings.spending_gate])]
    if settings.prepare == "only" and gates:
        raise ConfigError(
            f"{gates[0].given} has nothing to judge with --mle-prepare=only, "
            "which runs no agent: leave one of them out"
        )
    if settings.description == "obfuscated":
        for name in settings.ids:
            _ = session.registry.load(name).obfuscated_description  # one that has none ends here
    lock = _hold(session)
    try:
        plan, done = _planned(session, notes)
        write_plan(settings.run, plan)
    except BaseException as error:
        lock.release()
        if isinstance(error, OSError):
            raise _unwritable(session, error) from None
        raise
    return OpenRun(plan, lock, notes, done)


def refuse_what_cannot_work(session: MleSession) -> list[str]:
    """Refuse, on the host where attempts are to run, what cannot; return lines for the header."""
    notes = _sandbox_notes(session)
    if session.settings.missing == "fail":
        _refuse_unprepared(session)
    return notes


def distinct_limits(session: MleSession) -> list[Limits]:
    """Return the limits of the agent on the selected competitions, each once."""
    competitions = (session.registry.load(i) for i in session.settings.ids)
    return list(dict.fromkeys(session.limits(c, session.agent) for c in competitions))


def _sandbox_notes(session: MleSession) -> list[str]:
    if session.agent_is_overridden:
        return []
    agent = session.agent
    agent.environment()
    _refuse_models(session, agent)
    notes = list(agent.notes)
    for limits in distinct_limits(session):
        notes += session.sandbox(agent).preflight(agent, limits, session.network(agent))
    return notes


def _refuse_models(session: MleSession, agent: Agent) -> None:
    """Refuse a budget without models, and models that the gateway could not serve."""
    budget = session.budget(agent)
    if agent.models:
        # late on purpose: only for agents with models
        from pytest_mlebench.gateway.readiness import check_ready

        check_ready(agent, budget)
    if budget.session_usd is not None and _has_other_hosts(session):
        raise ConfigError(
            f"session_usd of agent {agent.name!r} bounds the dollars of the whole run, and workers "
            "on other hosts do not see what it has spent: bound every attempt by usd instead, or "
            "run on one host"
        )


def _has_other_hosts(session: MleSession) -> bool:
    """Tell whether attempts run on hosts that do not see the run's folder."""
    option = session.config.option
    places = (spec.rpartition("*")[2] for spec in getattr(option, "tx", None) or ())
    far = any(not place.startswith("popen") for place in places)
    return far or bool(getattr(option, "mle_hosts", None))


def _choices(session: MleSession) -> list[str]:
    """Return what the options change about the data."""
    notes = [] if session.settings.verify else ["datasets were not verified"]
    words = {"kaggle": "original descriptions", "obfuscated": "obfuscated descriptions"}
    chosen = words.get(session.settings.description)
    return notes if chosen is None else [*notes, chosen]


def _refuse_unprepared(session: MleSession) -> None:
    settings = session.settings
    competitions = [session.registry.load(i) for i in settings.ids]
    if settings.prepare != "never":
        from pytest_mlebench.store.bulk import preflight  # late on purpose: heavy

        preflight(competitions, session.store)
        return
    lost = [each.id for each in competitions if session.store.find(each) is None]
    if lost:
        raise ConfigError(
            f"{len(lost)} of {len(settings.ids)} competitions are not prepared in "
            f"{settings.store}: {', '.join(lost[:5])}{', …' if len(lost) > 5 else ''}; "
            f"prepare them with --mle-prepare=auto, or pass over them with --mle-missing=skip"
        )


def _hold(session: MleSession) -> BaseFileLock:
    """Make the run's folder and hold it against other sessions."""
    from filelock import FileLock, Timeout  # late on purpose: only when agents run

    _take_free_name(session)
    folder = session.settings.run
    try:
        folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(folder.lock)
        lock.acquire(timeout=0)
    except Timeout:
        raise ConfigError(
            f"run {folder.path.name!r} is in use by another session: wait for it, or choose "
            f"another name with --mle-run"
        ) from None
    except OSError as error:
        raise _unwritable(session, error) from None
    return lock


def _take_free_name(session: MleSession) -> None:
    """Take the next name where a run without one was begun in the same second."""
    if options.explicit(session.config, "run") is not None:
        return
    path, number = session.settings.run_path, 2
    while True:
        try:
            session.settings.run_path.mkdir(mode=0o700, parents=True)
            return
        except FileExistsError:
            other = path.with_name(f"{path.name}-{number}")
            session.settings = replace(session.settings, run_path=other)
            number += 1
        except OSError as error:
            raise _unwritable(session, error) from None


def _unwritable(session: MleSession, error: OSError) -> ConfigError:
    return ConfigError(
        f"cannot write to {session.settings.run_path}: {error.strerror or error}: choose another "
        "folder with --mle-runs-dir"
    )


def _planned(session: MleSession, notes: tuple[str, ...]) -> tuple[Plan, frozenset[ItemKey]]:
    """Return the plan of the run, and the items that an earlier session of it has done."""
    folder = session.settings.run
    identity = _identity(session)
    disclosure = _disclosure(session, notes, identity)
    plan = replace(session.settings.plan(), identity=identity, disclosure=disclosure)
    if not folder.plan.is_file():
        return plan, frozenset()
    before = read_plan(folder)
    remove_workspaces(folder)
    attempts = latest_attempts(folder)
    if identity is not None:
        _refuse_another_agent(session, folder, before, identity)
        attempts = _without_changed(session, folder, before, identity, attempts)
    done = frozenset(item_of(run.record) for run in attempts if run.is_over)
    return plan.expecting(before.expected), done


def _refuse_another_agent(
    session: MleSession, folder: RunFolder, before: Plan, identity: Identity
) -> None:
    known = before.identity.facts["agent.name"] if before.identity else before.disclosure.agent
    if known not in (None, identity.facts["agent.name"]):
        raise ConfigError(
            f"run {folder.path.name!r} belongs to agent {known!r}, not to "
            f"{session.shown_agent!r}: choose another name with --mle-run"
        )


def _without_changed(
    session: MleSession, folder: RunFolder, before: Plan, identity: Identity, attempts: list[Run]
) -> list[Run]:
    """Return the attempts that still count; refuse, or set aside, those of a changed agent."""
    changes = before.identity.differences(identity) if before.identity else []
    if not changes:
        return attempts
    if not session.settings.rerun_changed:
        raise ConfigError(
            f"run {folder.path.name!r} was made under other conditions ({'; '.join(changes)}): "
            "choose another name with --mle-run, or repeat what has changed with "
            "--mle-rerun=changed"
        )
    kept = []
    for run in attempts:
        own = run.record.identity
        mine = item_of(run.record).agent == session.shown_agent
        if mine and own is not None and own.agent_fingerprint != identity.agent_fingerprint:
            run.change(superseded=True)
        else:
            kept.append(run)
    return kept


def _identity(session: MleSession) -> Identity | None:
    """Return all that options and agent decide about every attempt of the session."""
    if session.agent_is_overridden:
        return None
    agent, settings = session.agent, session.settings
    limits = {f"limits.{key}": value for key, value in settings.limits.items()}
    return session.identity(agent).with_facts(
        **limits,
        sandbox=session.sandbox(agent).name,
        network=session.network(agent),
        description=settings.description,
        **budget_facts(agent, session.budget(agent)),
        verify="on" if settings.verify else "off",
    )


def _disclosure(
    session: MleSession, notes: tuple[str, ...], identity: Identity | None
) -> Disclosure:
    """Return what is known of the conditions before anything has run."""
    settings = session.settings
    base = Disclosure(
        agent=session.shown_agent,
        splits=settings.splits,
        competitions=settings.competitions,
        seeds=settings.seeds,
        require=settings.require,
        gpu_hour_usd=settings.gpu_hour_usd,
        plugin_version=__version__,
        benchmark=VERSION,
        started=stamp(time.time()),
        notes=notes,
    )
    if identity is None:
        return base
    agent = session.agent
    limits = next(iter(distinct_limits(session)), None)
    return replace(
        base,
        agent_version=agent.version,
        fingerprint=identity.agent_fingerprint,
        sandbox=session.sandbox(agent).name,
        network=session.network(agent),
        models=agent.describe_models(),
        budget=session.budget(agent).describe() if agent.models else None,
        description=settings.description,
        llms=agent.llms,
        url=agent.url,
        paper=agent.paper,
        statement=agent.statement,
        limits={} if limits is None else limits.describe(),
        deviations={} if limits is None else limits.deviations(STANDARD),
    )


def stamp(moment: float) -> str:
    """Return a moment as reports write it."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
