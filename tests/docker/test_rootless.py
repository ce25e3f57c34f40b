"""An image of an engine runs without it: saved once, and found by its id."""

from __future__ import annotations

from pathlib import Path

import pytest
from docker_images import BUSYBOX
from sandbox_job import Place

from pytest_mlebench.agent import Agent
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.sandbox.docker import Engine
from pytest_mlebench.sandbox.rootless import RootlessSandbox

pytestmark = pytest.mark.docker


@pytest.fixture(autouse=True)
def chosen_engine(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the sandbox find the engine of the tests."""
    monkeypatch.setenv("DOCKER_HOST", engine.address)


def test_an_image_of_an_engine_is_saved_once(tmp_path: Path, engine: Engine) -> None:
    engine.api.tag(BUSYBOX, "mlebench-test/rootless", "1")
    agent = Agent("tester", image="mlebench-test/rootless:1", command=("cat", "/etc/passwd"))
    place, cache = Place(tmp_path), tmp_path / "cache"
    sandbox = RootlessSandbox(cache=cache, grace_seconds=1)
    job = place.job(agent, network="none")
    ending = sandbox.run(job)
    assert ending.exit_code == 0
    assert job.log.read_text().startswith("root:x:0:0:")
    assert ending.image == sandbox.image_digest(agent)
    assert not list(cache.glob(".*.tar"))
    known = sandbox.image(agent).root
    (known / "mark").touch()
    again = RootlessSandbox(cache=cache).image(agent)
    assert (again.root / "mark").is_file()
    assert again.facts.digest == ending.image


def test_a_folder_is_built_by_the_engine_and_runs_without_it(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    folder.mkdir()
    dockerfile = f"FROM {BUSYBOX}\nENV OF_IMAGE=yes\nCOPY own /home/agent/own\nCMD cat own; env\n"
    (folder / "Dockerfile").write_text(dockerfile)
    (folder / "own").write_text("built\n")
    agent = Agent("tester", build=folder, folder=folder)
    job = Place(tmp_path).job(agent, network="none")
    assert RootlessSandbox(cache=tmp_path / "cache").run(job).exit_code == 0
    lines = job.log.read_text().splitlines()
    assert lines[0] == "built"
    assert "OF_IMAGE=yes" in lines


def test_an_image_that_is_nowhere_is_refused(tmp_path: Path) -> None:
    agent = Agent("tester", image="mlebench-test/none:1", command=("true",))
    with pytest.raises(ConfigError, match="is not on the engine and cannot be pulled"):
        RootlessSandbox(cache=tmp_path / "cache").image(agent)
