"""The agents in containers that ``pytest-mlebench init`` makes run on a real engine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from docker_images import PYTHON

from pytest_mlebench.cli import main


@pytest.mark.parametrize("kind", ["docker", "reference"])
def test_an_agent_in_a_container_passes_at_once(kind: str, tmp_path: Path, engine: object) -> None:
    del engine  # it has the image that stands in for the registry's
    folder = tmp_path / "repo"
    assert main(["init", str(folder), "--kind", kind, "--name", "mlebench-test-init"]) == 0
    dockerfile = folder / "agents/mlebench-test-init/Dockerfile"
    text = dockerfile.read_text()
    assert "python:3.12-slim" in text
    dockerfile.write_text(text.replace("python:3.12-slim", PYTHON))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "wine", "-p", "no:cacheprovider"],
        cwd=folder,
        env=os.environ | {"PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
