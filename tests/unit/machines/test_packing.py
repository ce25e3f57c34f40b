"""An agent that travels: the same files, the same sha256, other paths."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError, InfrastructureError
from pytest_mlebench.machines import packing
from pytest_mlebench.machines.packing import (
    PYTHON,
    pack_agent,
    pack_competitions,
    read_agent,
    unpack,
)


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
    place = unpack(package.data, package.sha256, tmp_path / "cache")
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


def test_modules_beside_a_script_travel_with_it(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("depth = 3")
    (tmp_path / "helper.py").write_text("import lib")
    (tmp_path / "solve.py").write_text("import helper")
    (tmp_path / "notes.txt").write_text("no module")
    package = pack_agent(Agent("mine", command=("python", str(tmp_path / "solve.py"))))
    place = unpack(package.data, package.sha256, tmp_path / "cache")
    assert read_agent(place).command == ("python", str(place / "file1/solve.py"))
    files = {str(file.relative_to(place / "file1")) for file in (place / "file1").rglob("*.*")}
    assert files == {"solve.py", "helper.py", "lib/__init__.py"}


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
    with pytest.raises(InfrastructureError, match="a package arrived damaged"):
        unpack(package.data[:-1] + b"x", package.sha256, tmp_path / "cache")
    assert not list(tmp_path.glob("cache/*"))


def test_a_virtual_environment_cannot_travel(agent: Agent) -> None:
    assert agent.folder is not None
    (agent.folder / "venv").mkdir()
    (agent.folder / "venv" / "pyvenv.cfg").write_text("")
    with pytest.raises(ConfigError, match=r"has a virtual environment in its folder, .*venv"):
        pack_agent(agent)


@pytest.mark.parametrize(("limit", "travels"), [(100, True), (9, False)])
def test_the_raw_files_of_a_competition_travel_where_they_are_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, travels: bool
) -> None:
    monkeypatch.setattr(packing, "MAX_RAW_BYTES", limit)
    folder = tmp_path / "mine"
    (folder / "raw").mkdir(parents=True)
    (folder / "competition.toml").write_text("")
    (folder / "raw" / "train.csv").write_text("1234567890")
    package = pack_competitions([folder])
    place = unpack(package.data, package.sha256, tmp_path / "cache")
    assert (place / "mine/competition.toml").is_file()
    assert (place / "mine/raw/train.csv").is_file() is travels


def test_a_function_of_nowhere_cannot_travel() -> None:
    with pytest.raises(ConfigError, match="is a Python function that cannot travel"):
        pack_agent(Agent(name="mine", function=lambda context: None))
