"""Which walls a container has depends on its engine, and on what the agent's file gives away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.sandbox.docker.container_walls import require_walls, walls_of
from pytest_mlebench.sandbox.docker.engine import EngineFacts, read_facts

AGENT = Agent(name="mine", image="agent:1")


def facts(*security: str, **info: object) -> EngineFacts:
    return read_facts("unix:///engine.sock", {}, {"SecurityOptions": list(security)} | info)


def test_an_ordinary_engine_gives_all_of_them() -> None:
    found = facts("name=apparmor", "name=seccomp,profile=default")
    assert " ".join(walls_of(found, AGENT, "open")) == (
        "users mounts pids ipc uts seccomp apparmor cgroup"
    )
    assert "net" in walls_of(found, AGENT, "none")
    require_walls(found, AGENT, "open")


@pytest.mark.parametrize("options", [[], ["name=seccomp,profile=unconfined"]])
def test_an_engine_without_a_filter_is_refused(options: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        require_walls(facts(*options, PidsLimit=False), AGENT, "open")
    assert str(caught.value) == (
        "--mle-require-walls: the engine at unix:///engine.sock gives containers no seccomp and no "
        "cgroup: see SECURITY.md for what each wall needs"
    )


def test_a_privileged_agent_has_none() -> None:
    found, agent = facts("name=seccomp,profile=default"), replace(AGENT, privileged=True)
    assert walls_of(found, agent, "none") == ()
    with pytest.raises(ConfigError, match="is privileged, which leaves no wall: remove privileged"):
        require_walls(found, agent, "none")
