"""The examples work as they stand."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
import yaml
from plugin_session import Session

EXAMPLE = Path(__file__).parents[2] / "examples/agent-repo"


@pytest.fixture
def repository(session: Session) -> Session:
    """A copy of the agent repository."""
    shutil.copytree(EXAMPLE, session.path, dirs_exist_ok=True)
    return session


def test_an_agent_repository_tests_its_agent(repository: Session, workers: tuple[str, ...]) -> None:
    result = repository.run("--mle-agent=nearest", "tests", *workers)
    result.assert_outcomes(passed=3)


def test_competitions_of_ones_own_are_collected_graded_and_in_a_split(repository: Session) -> None:
    result = repository.run("--mle-agent=nearest", "--mle-split=ours", "--mle-report=r.json")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["mle-bench: agent nearest, 1 competition (ours)*", "* ours"])
    (only,) = repository.report("r.json")["results"]
    assert only["competition"] == "tide-heights"
    assert only["grade"]["medal"] != "none"


def test_the_tests_of_an_agent_repository_skip_without_an_agent(repository: Session) -> None:
    repository.run().assert_outcomes(skipped=3)


def test_the_commands_of_the_release_gate_run(repository: Session) -> None:
    workflow = yaml.safe_load((EXAMPLE / ".github/workflows/release-gate.yml").read_text())
    (job,) = workflow["jobs"].values()
    (command,) = [s["run"] for s in job["steps"] if s.get("name") == "Run the agent"]
    settings = job["env"] | {
        "SPLIT": "ours",
        "BAR": "ours:60",
        "SEEDS": "2",
        "GITHUB_SHA": "1f2e3d",
    }
    for name, value in settings.items():
        command = command.replace(f"${name}", str(value))
    program, *arguments = shlex.split(command)
    assert program == "pytest"
    result = repository.run(*arguments)
    assert result.ret == 0, result.stdout.str()
    result.assert_outcomes(passed=2)
    kept = next(s["with"]["path"] for s in job["steps"] if "upload-artifact" in s.get("uses", ""))
    for name in kept.replace("${{ github.sha }}", "1f2e3d").split():
        assert (repository.path / name).exists()
    assert "tide-heights" in (repository.path / "report.md").read_text()
