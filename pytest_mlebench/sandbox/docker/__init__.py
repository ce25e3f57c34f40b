"""The Docker sandbox: agents in containers, with real limits, never near the answers.

    sandbox = DockerSandbox(cache=runs_folder / ".docker")
    lines = sandbox.preflight(agent, limits, network)   # ConfigError before anything runs
    outcome = sandbox.run(job)                          # SandboxError: not the agent's fault

Layers: ``engine`` (the connection) · ``images`` and ``prepared`` (what runs) · ``request`` (what is
asked of the engine, as data) · ``home`` (folders on our side) · ``container`` (its life) ·
``supervise`` with ``disk`` and ``stats`` (its limits) · ``attempt`` (from start to end) ·
``orphans`` (what a dead process left behind). Nothing here imports the docker package before a
sandbox is used.
"""

from __future__ import annotations

from pytest_mlebench.sandbox.docker.cleanup import find_orphans, remove_orphans
from pytest_mlebench.sandbox.docker.docker_sandbox import DockerSandbox
from pytest_mlebench.sandbox.docker.engine import Engine, describe_engine

__all__ = ["DockerSandbox", "Engine", "describe_engine", "find_orphans", "remove_orphans"]
