"""What keeps an agent inside its container, by the names that the process sandbox uses, too."""

from __future__ import annotations

from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import WallMissing
from pytest_mlebench.sandbox.docker.engine import EngineFacts

_ALWAYS = ("users", "mounts", "pids", "ipc", "uts")  # of every container that is not privileged
_REQUIRED = (*_ALWAYS, "seccomp", "cgroup")
_MODULES = ("apparmor", "selinux")


def walls_of(facts: EngineFacts, agent: Agent, network: str) -> tuple[str, ...]:
    """Return the walls around the containers of an agent; what is privileged has none."""
    if agent.privileged:
        return ()
    found = list(_ALWAYS)
    if network != "open":
        found.append("net")
    found += [name for name in ("seccomp", *_MODULES) if name in facts.security]
    if not {"memory", "pids"} & set(facts.missing):
        found.append("cgroup")
    return tuple(found)


def require_walls(facts: EngineFacts, agent: Agent, network: str) -> None:
    """Refuse an agent whose containers lack a wall."""
    if agent.privileged:
        raise WallMissing(
            f"--mle-require-walls: agent {agent.name!r} is privileged, which leaves no wall: "
            "remove privileged from its agent.toml"
        )
    found = walls_of(facts, agent, network)
    lacking = [name for name in _REQUIRED if name not in found]
    if lacking:
        raise WallMissing(
            f"--mle-require-walls: the engine at {facts.address} gives containers no "
            f"{' and no '.join(lacking)}: see SECURITY.md for what each wall needs"
        )
