"""Refuse, before the first agent starts, what cannot work; and open the run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pytest_mlebench import __version__
from pytest_mlebench._problems import Problems, as_list
from pytest_mlebench.attempts.identity import Identity
from pytest_mlebench.attempts.leftovers import remove_workspaces
from pytest_mlebench.attempts.plan import Plan, read_plan, write_plan
from pytest_mlebench.attempts.record import Run
from pytest_mlebench.attempts.run_results import item_of, latest_attempts
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.limits import STANDARD
from pytest_mlebench.plugin import options
from pytest_mlebench.plugin.checks import distinct_limits, examine, examine_host
from pytest_mlebench.plugin.resume import (
    changes_since,
    identity_of,
    in_use,
    refuse_other_run,
)
from pytest_mlebench.plugin.session import MleSession
from pytest_mlebench.plugin.way_out import explain
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
    done: Mapping[ItemKey, Run] = field(default_factory=dict)  # by an earlier session

    def close(self) -> None:
        """Let go of the folder."""
        self.lock.release()


def open_run(session: MleSession) -> OpenRun:
    """Refuse what cannot work, all of it at once, then make or resume the run's folder."""
    problems = Problems()
    notes = examine(session, problems)
    if problems:
        raise ConfigError(explain(session.config, problems))
    lock = _hold(session)
    try:
        plan, done = _planned(session, notes)
        write_plan(session.settings.run, plan)
    except BaseException as error:
        lock.release()
        if isinstance(error, OSError):
            raise _unwritable(session, error) from None
        raise
    return OpenRun(plan, lock, notes, done)


def refuse_what_cannot_work(session: MleSession) -> list[str]:
    """Refuse, on the host where attempts are to run, what cannot; return lines for the header."""
    problems = Problems()
    notes = examine_host(session, problems)
    if problems:
        raise ConfigError(as_list(problems))
    return notes


def _hold(session: MleSession) -> BaseFileLock:
    """Make the run's folder and hold it against other sessions."""
    from filelock import FileLock, Timeout  # late on purpose: only when agents run

    _take_free_name(session)
    folder = session.settings.run
    try:
        folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(PermissionError):  # it is somebody else's, who has let us in
            folder.path.chmod(0o700)
        lock = FileLock(folder.lock)
        lock.acquire(timeout=0)
    except Timeout:
        raise in_use(folder) from None
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


def _planned(session: MleSession, notes: tuple[str, ...]) -> tuple[Plan, dict[ItemKey, Run]]:
    """Return the plan of the run, and the items that an earlier session of it has done."""
    folder = session.settings.run
    identity = identity_of(session)
    disclosure = _disclosure(session, notes, identity)
    plan = replace(session.settings.plan(), identity=identity, disclosure=disclosure)
    if not folder.plan.is_file():
        return plan, {}
    before = read_plan(folder)  # which may have come since it was looked at: now we hold it
    refuse_other_run(session, folder, before)
    remove_workspaces(folder)
    attempts = latest_attempts(folder)
    if identity is not None:
        attempts = _without_changed(session, before, identity, attempts)
    done = {item_of(run.record): run for run in attempts if run.is_over}
    plan = replace(plan, tests=before.tests or plan.tests)
    return plan.expecting(before.expected), done


def _without_changed(
    session: MleSession, before: Plan, identity: Identity, attempts: list[Run]
) -> list[Run]:
    """Return the attempts that still count; set aside those of a changed agent."""
    if not changes_since(before, identity):
        return attempts
    kept = []
    for run in attempts:
        own = run.record.identity
        mine = item_of(run.record).agent == session.shown_agent
        if mine and own is not None and own.agent_fingerprint != identity.agent_fingerprint:
            run.change(superseded=True)
        else:
            kept.append(run)
    return kept


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
