"""An agent that travels: the same files, the same sha256, other paths."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError, InfrastructureError
from pytest_mlebench.machines.packing import PYTHON, pack_agent, read_agent, unpack_agent


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    folder = tmp_path / "mine"
    (folder / "sub").mkdir(parents=True)
    (folder / "main.py").write_text("print()")
    (folder / "sub" / "start.sh").write_text("#!/bin/sh\n")
    (folder / "sub" / "start.sh").chmod(0o755)
    (folder / "link").symlink_to("main.py")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_text("")
    (tmp_path / "config.json").write_text("{}")
    command = (sys.executable, str(folder / "main.py"), str(tmp_path / "config.json"), "--fast")
    return Agent(name="mine", command=command, folder=folder, env={"KEY": "${SECRET_KEY}"})


def test_an_agent_arrives_with_its_files_and_the_paths_of_the_host(
    agent: Agent, tmp_path: Path
) -> None:
    package = pack_agent(agent)
    place = unpack_agent(package.data, package.sha256, tmp_path / "cache")
    there = read_agent(place)
    assert there.folder == place / "folder"
    assert there.command == (
        sys.executable,
        str(place / "folder/main.py"),
        str(place / "file2/config.json"),
        "--fast",
    )
    files = sorted(path.relative_to(place / "folder") for path in there.folder.rglob("*"))
    assert [str(file) for file in files] == ["link", "main.py", "sub", "sub/start.sh"]
    assert (there.folder / "link").is_symlink()
    assert (there.folder / "sub/start.sh").stat().st_mode & 0o111
    assert (there.env, there.name) == ({"KEY": "${SECRET_KEY}"}, "mine")


def test_the_same_agent_makes_the_same_package(agent: Agent) -> None:
    assert pack_agent(agent) == pack_agent(agent)


def test_no_secret_and_no_interpreter_of_ours_travels(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = pack_agent(agent).sha256
    monkeypatch.setenv("SECRET_KEY", "value")
    assert pack_agent(agent).sha256 == before
    assert sys.executable != PYTHON


def test_a_package_that_arrives_damaged_is_refused(agent: Agent, tmp_path: Path) -> None:
    package = pack_agent(agent)
    with pytest.raises(InfrastructureError, match="the agent arrived damaged"):
        unpack_agent(package.data[:-1] + b"x", package.sha256, tmp_path / "cache")
    assert not list(tmp_path.glob("cache/*"))


def test_a_virtual_environment_cannot_travel(agent: Agent) -> None:
    assert agent.folder is not None
    (agent.folder / "venv").mkdir()
    (agent.folder / "venv" / "pyvenv.cfg").write_text("")
    with pytest.raises(ConfigError, match=r"has a virtual environment in its folder, .*venv"):
        pack_agent(agent)


def test_a_function_of_nowhere_cannot_travel() -> None:
    with pytest.raises(ConfigError, match="is a Python function that cannot travel"):
        pack_agent(Agent(name="mine", function=lambda context: None))
