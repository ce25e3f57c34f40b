"""A repository that ``pytest-mlebench init`` has made passes at once."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from plugin_session import Session

from pytest_mlebench.agents.agent_toml import read_agent as read_toml
from pytest_mlebench.agents.reference_config import read_agent as read_yaml
from pytest_mlebench.budget import Budget
from pytest_mlebench.cli import main
from pytest_mlebench.commands.init import KINDS


@pytest.fixture
def make(session: Session, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A folder in which commands run as a user types them."""
    monkeypatch.chdir(session.path)
    return session


def commands(path: Path) -> list[list[str]]:
    """Return the commands of a README as words."""
    blocks = re.findall(r"^    (pytest.*?)(?:\s+#.*)?$", path.read_text(), re.MULTILINE)
    return [shlex.split(line)[1:] for line in blocks]


@pytest.mark.parametrize("kind", ["command", "python"])
def test_every_command_of_its_readme_passes(make: Session, kind: str) -> None:
    assert main(["init", "--kind", kind, "--name", "mine"]) == 0
    typed = commands(make.path / "README.md")
    assert len(typed) == 3
    for words in (typed[0], typed[2]):  # the second is the whole demo split
        result = make.run(*words)
        assert result.ret == 0, result.stdout.str()
        result.assert_outcomes(passed=2)
    result = make.run(*typed[1], "-k", "diabetes")
    result.assert_outcomes(passed=1, deselected=5)


def test_its_workflow_gates_a_release_and_keeps_the_report(make: Session) -> None:
    assert main(["init", "--name", "mine"]) == 0
    text = (make.path / ".github/workflows/release-gate.yml").read_text()
    (job,) = yaml.safe_load(text)["jobs"].values()
    (command,) = [s["run"] for s in job["steps"] if s.get("name") == "Run the agent"]
    for name, value in (job["env"] | {"GITHUB_SHA": "1f2e3d"}).items():
        command = command.replace(f"${name}", str(value))
    assert make.run(*shlex.split(command)[1:]).ret == 0
    assert _installed_by(job, make.path) == {"numpy", "pytest-mlebench[all]; extra == 'test'"}
    kept = next(s["with"]["path"] for s in job["steps"] if "upload-artifact" in s.get("uses", ""))
    for name in kept.replace("${{ github.sha }}", "1f2e3d").split():
        assert (make.path / name).exists()


def _installed_by(job: dict[str, Any], repo: Path) -> set[str]:
    """Return what the workflow installs where the agent has a dependency of its own."""
    (command,) = [s["run"] for s in job["steps"] if s.get("name") == "Install"]
    assert command.startswith('python -m pip install ".[test]"')
    project = repo / "pyproject.toml"
    project.write_text(project.read_text().replace("dependencies = []", 'dependencies = ["numpy"]'))
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    place = ("--no-deps", "--no-build-isolation", "--target", repo / "site")
    subprocess.run([*pip, *place, repo], check=True)
    (metadata,) = (repo / "site").glob("*/METADATA")
    return set(re.findall(r"^Requires-Dist: (.*)$", metadata.read_text(), re.MULTILINE))


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_is_written_is_filled_in(make: Session, kind: str) -> None:
    assert main(["init", "repo", "--kind", kind, "--name", "my-agent"]) == 0
    files = [path for path in (make.path / "repo").rglob("*") if path.is_file()]
    assert not [path for path in files if re.search(r"@[A-Z]+@|agents/NAME", path.read_text())]
    assert {"README.md", "conftest.py", "pyproject.toml", ".gitignore"} <= {p.name for p in files}


def test_nothing_that_exists_is_replaced(make: Session, capsys: pytest.CaptureFixture[str]) -> None:
    (make.path / "README.md").write_text("mine")
    assert main(["init", "--name", "mine"]) == 4
    assert "README.md exists already and is left as it is: choose" in capsys.readouterr().err
    assert [path.name for path in make.path.iterdir()] == ["README.md"]


def test_a_wrong_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--name", "My Agent"]) == 4
    assert "--name must be small letters, digits and ._-" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["command", "docker", "reference"])
def test_what_it_says_of_models_is_right(make: Session, kind: str) -> None:
    assert main(["init", "--kind", kind, "--name", "mine"]) == 0
    (path,) = [*make.path.glob("agents/mine/agent.toml"), *make.path.glob("agents/mine/*.yaml")]
    before, hint, after = path.read_text().partition("which keeps the key and counts:\n")
    path.write_text(before + hint + re.sub(r"^( *)#( |$)", r"\1", after, flags=re.MULTILINE))
    agent = (read_toml if path.suffix == ".toml" else read_yaml)(path)
    assert [upstream.describe() for upstream in agent.models] == ["openai at api.openai.com"]
    assert agent.budget == Budget(usd=5.0)
