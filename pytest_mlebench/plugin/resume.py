"""Whether a run's folder can be made or resumed by this session."""

from __future__ import annotations

from pytest_mlebench._problems import Problems, Remedy
from pytest_mlebench.attempts.identity import Identity, budget_facts
from pytest_mlebench.attempts.plan import Plan, read_plan
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.plugin import options
from pytest_mlebench.plugin.session import MleSession
from pytest_mlebench.plugin.writable import require_room

FRESH: Remedy = {"run": None}


def examine_run(session: MleSession, problems: Problems) -> None:
    """Note what keeps this session from the run's folder; change nothing in it."""
    folder, config = session.settings.run, session.config
    runs = folder.path.parent
    label = options.spelled(config, "runs-dir")
    problems.check(lambda: require_room(folder.path, label, runs), None, {"runs-dir": None})
    if folder.lock.exists():
        problems.check(lambda: _refuse_in_use(folder), None, FRESH)
    if not folder.plan.is_file() or session.agent_is_stand_in:
        return
    before = problems.check(lambda: read_plan(folder), None, FRESH)
    if before is None:
        return
    problems.check(lambda: refuse_other_run(session, folder, before, bool(problems)), None, FRESH)


def identity_of(session: MleSession) -> Identity | None:
    """Return all that options and agent decide about every attempt of the session."""
    if session.agent_is_overridden:
        return None
    agent, settings = session.agent, session.settings
    limits = {f"limits.{key}": value for key, value in settings.limits.items()}
    if settings.whose_limits != "standard":
        limits["limits"] = settings.whose_limits
    return session.identity(agent).with_facts(
        **limits,
        sandbox=session.sandbox(agent).name,
        network=session.network(agent),
        description=settings.description,
        **budget_facts(agent, session.budget(agent)),
        verify="on" if settings.verify else "off",
    )


def changes_since(before: Plan, identity: Identity | None) -> list[str]:
    """Return what has changed since a run was planned, as people read it."""
    if before.identity is None or identity is None:
        return []
    return before.identity.differences(identity)


def in_use(folder: RunFolder) -> ConfigError:
    """Return the complaint about a run that another session holds."""
    return ConfigError(
        f"run {folder.path.name!r} is in use by another session: wait for it, or choose "
        f"another name with --mle-run"
    )


def refuse_other_run(
    session: MleSession, folder: RunFolder, before: Plan, is_refused: bool = False
) -> None:
    """Refuse a run of another agent or of other conditions, unless they are to be repeated.

    What *is refused* already does not wait for an image to be compared.
    """
    if session.agent_is_overridden:
        return
    agent = session.agent
    known = before.identity.facts["agent.name"] if before.identity else before.disclosure.agent
    if known not in (None, agent.name):
        raise ConfigError(
            f"run {folder.path.name!r} belongs to agent {known!r}, not to "
            f"{session.shown_agent!r}: choose another name with --mle-run"
        )
    if session.settings.rerun_changed or (is_refused and (agent.image or agent.build)):
        return
    if changes := changes_since(before, identity_of(session)):
        raise ConfigError(
            f"run {folder.path.name!r} was made under other conditions ({'; '.join(changes)}): "
            "choose another name with --mle-run, or repeat what has changed with "
            "--mle-rerun=changed"
        )


def _refuse_in_use(folder: RunFolder) -> None:
    from filelock import FileLock, Timeout  # late on purpose: only when agents run

    try:
        FileLock(folder.lock).acquire(timeout=0).lock.release()
    except Timeout:
        raise in_use(folder) from None
    except OSError:
        return  # a folder that cannot be written is another complaint
