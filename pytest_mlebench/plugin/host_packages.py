"""What a session sends to its hosts: the agent, competitions of one's own, secrets, arguments."""

from __future__ import annotations

import os
import secrets
from typing import Any

import pytest

from pytest_mlebench._files import write_text
from pytest_mlebench._references import referenced_names
from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.machines.packing import Package, pack_agent, pack_competitions
from pytest_mlebench.machines.posting import Posting
from pytest_mlebench.plugin.session import MleSession


class HostPackages:
    """What travels to the hosts of a session, packed once."""

    def __init__(self, session: MleSession) -> None:
        self._session = session
        self._agent = packed_agent(session)
        self._competitions = packed_competitions(session)

    def all(self) -> list[Package]:
        """Return what hosts may fetch."""
        return [each for each in (self._agent, self._competitions) if each is not None]

    def posting(
        self, machine: str, job: str | None, token: str, silence: float, session_usd: float | None
    ) -> Posting:
        """Return what a worker is told that is on a machine, or in an allocation of it."""
        agent, settings = self._session.agent, self._session.settings
        return Posting(
            machine=machine,
            job=job,
            run=str(settings.run_path.absolute()),
            token=token,
            grace=settings.grace,
            silence=silence,
            agent=self._agent.parcel,
            competitions=None if self._competitions is None else self._competitions.parcel,
            image=self._session.image,
            identity=dict(self._session.identity(agent).facts),
            session_usd=session_usd,
            secrets=secrets_of(agent),
        )


def packed_agent(session: MleSession) -> Package:
    """Return the agent, ready to travel, or refuse what cannot travel."""
    if session.agent_is_overridden:
        raise ConfigError(
            "--mle-hosts cannot send the agent of a conftest.py to other hosts: declare it in an "
            "agent.toml and name it with --mle-agent"
        )
    if session.settings.tests:
        raise ConfigError(
            f"--mle-hosts runs the built-in suite only, given: {' '.join(session.settings.tests)}: "
            "leave the paths out, or run them with -n on one host"
        )
    agent = session.agent
    agent.environment()  # what it refers to has to be set here, and travels by value
    agent.model_keys()
    return pack_agent(agent, session.settings.hidden)


def packed_competitions(session: MleSession) -> Package | None:
    """Return the competitions that only this host has, ready to travel, if there are any."""
    registry = session.registry
    own = [registry.load(each) for each in session.settings.ids if not registry.is_builtin(each)]
    return pack_competitions(each.folder for each in own) if own else None


def secrets_of(agent: Agent) -> dict[str, str]:
    """Return the variables that an agent refers to, by value."""
    names = {name for value in agent.env.values() for name in referenced_names(value)}
    names |= {name for upstream in agent.models for name in upstream.references()}
    return {name: os.environ[name] for name in sorted(names) if name in os.environ}


def run_token(path: Any) -> str:
    """Return what tells this run from all others, made once."""
    if not path.is_file():
        write_text(path, secrets.token_hex(16))
    text: str = path.read_text()
    return text


def worker_arguments(config: pytest.Config, agent: str) -> list[str]:
    """Return what the workers' sessions are given: what was typed, and the agent."""
    typed = [str(each) for each in config.invocation_params.args]
    return [*typed, f"--mle-agent={agent}", "-p", "no:cacheprovider"]
