"""What docs/agents.md shows and names is so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pytest_mlebench.agent import AgentContext
from pytest_mlebench.agents.find import find_agent
from pytest_mlebench.limits import STANDARD

TEXT = (Path(__file__).parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for folder in ("agents/my-agent/src", "agents/my-agent/docker", "src"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "agents/my-agent/docker/Dockerfile").touch()
    return tmp_path


def test_the_smallest_agent_is_one(root: Path) -> None:
    (root / "agents/my-agent/agent.toml").write_text(blocks("toml")[0])
    agent = find_agent("my-agent", rootdir=root)
    assert (agent.name, agent.command) == ("my-agent", ("python", "main.py"))


def test_the_full_agent_is_one_and_shows_every_key(root: Path) -> None:
    text = blocks("toml")[1]
    (root / "agents/my-agent/agent.toml").write_text(text)
    agent = find_agent("my-agent", rootdir=root)
    assert agent.build == root / "agents/my-agent/docker"
    assert agent.environment({"HF_TOKEN": "x"})["HF_TOKEN"] == "x"
    assert agent.model_keys({"OPENAI_API_KEY": "x"}) == {"openai": "x"}
    elsewhere = {"function", "time_variables", "notes"}  # of Python, and of the reference's file
    fields = set(type(agent).__dataclass_fields__) - elsewhere
    assert fields == set(tomllib.loads(text))


def test_the_projects_agent_is_one(root: Path) -> None:
    (root / "pyproject.toml").write_text(blocks("toml")[2])
    agent = find_agent("my-agent", rootdir=root)
    assert agent.command == ("python", "-m", "my_agent")
    assert [upstream.name for upstream in agent.models] == ["openai"]


def test_the_references_agent_is_one(root: Path) -> None:
    folder = root / "agents" / "aide"
    folder.mkdir()
    (folder / "start.sh").touch()
    (folder / "Dockerfile").touch()
    (folder / "config.yaml").write_text(blocks("yaml")[0])
    agent = find_agent("aide", rootdir=root)
    assert (agent.image, agent.build) == ("aide", folder)


def test_every_limit_and_every_part_of_the_context_is_named() -> None:
    shown = tomllib.loads(blocks("toml")[1])["limits"]
    assert [key for key in STANDARD.describe() if key not in shown and f"`{key}`" not in TEXT] == []
    parts = AgentContext.__dataclass_fields__
    assert [part for part in parts if f"`{part}`" not in TEXT] == []


@pytest.mark.parametrize(("number", "agent"), [(0, "any-name"), (1, "mine-fast")])
def test_the_examples_of_a_conftest_run(tmp_path: Path, number: int, agent: str) -> None:
    (tmp_path / "conftest.py").write_text(blocks("python")[number])
    (tmp_path / "main.py").write_text(
        "import os, shutil\n"
        "shutil.copy(os.environ['DATA_DIR'] + '/sample_submission.csv',\n"
        "            os.environ['SUBMISSION_DIR'] + '/submission.csv')\n"
    )
    options = ("--mle-competition=demo-wine-cultivars", "-p", "no:cacheprovider")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", f"--mle-agent={agent}", f"--rootdir={tmp_path}", *options],
        cwd=tmp_path,
        env=os.environ | {"MLEBENCH_DATA_DIR": str(tmp_path / "store")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 passed" in result.stdout
