"""A whole session: pytest with an agent in containers, plain and on two workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from docker_images import BUSYBOX

from pytest_mlebench.sandbox.docker import Engine

IDS = ("demo-wine-cultivars", "demo-tumour-diagnosis")
SCRIPT = (
    "cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv; "
    "/home/validate_submission.sh $SUBMISSION_DIR/submission.csv; "
    "find / -name 'answers*' 2>/dev/null"
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an agent; the data are prepared by the first session that needs them."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "agents" / "copier").mkdir(parents=True)
    (folder / "agents" / "copier" / "agent.toml").write_text(
        f'image = "{BUSYBOX}"\ncommand = ["sh", "-c", {json.dumps(SCRIPT)}]\nnetwork = "none"\n'
    )
    return folder


@pytest.mark.parametrize("workers", ["plain", "two"])
def test_a_session_with_containers(engine: Engine, project: Path, workers: str) -> None:
    selection = [f"--mle-competition={one}" for one in IDS]
    spread = ["-n", "2"] if workers == "two" else ["-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", "--mle-agent=copier", *selection, *spread]
    options = [
        "--mle-cpus=0.5",
        "--mle-memory=500MB",
        f"--mle-run={workers}",
        "--mle-data-dir=data",
    ]
    result = subprocess.run(
        [*command, *options, "-p", "no:cacheprovider"],
        cwd=project,
        env=os.environ | {"DOCKER_HOST": engine.address},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"engine: {engine.facts.describe()}" in result.stdout
    for one in IDS:
        attempt = project / "mle-runs" / workers / one / "seed0" / "attempt1"
        assert (attempt / "run.log").read_text() == '{"result": "Submission is valid."}\n'
        record = json.loads((attempt / "record.json").read_text())
        assert record["phase"] == "graded"
        assert record["ending"]["image"].startswith("sha256:")
        assert record["ending"]["format_checks"] == 1
        assert record["ending"]["details"]["phases"]["run"] > 0
    label = {"label": f"pytest-mlebench.run={workers}"}
    assert engine.api.containers(all=True, filters=label) == []
