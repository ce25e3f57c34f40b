"""A whole session: pytest with an agent in containers, plain and on two workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from docker_engines import OwnEngine
from docker_images import BUSYBOX
from sandbox_job import wait_until

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


def test_a_session_waits_for_an_engine_that_is_gone_for_a_while(
    own_engine: OwnEngine, tmp_path: Path
) -> None:
    """The first attempt is lost with the engine; the second one begins when the engine is back."""
    script = "cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv; sleep $PAUSE"
    (tmp_path / "agent.toml").write_text(
        f'name = "copier"\nimage = "{BUSYBOX}"\ncommand = ["sh", "-c", {json.dumps(script)}]\n'
        'network = "none"\nenv = { PAUSE = "20" }\n'
    )
    address = own_engine("start")
    command = [sys.executable, "-m", "pytest", "--mle-agent=agent.toml", "--mle-run=r"]
    command += ["--mle-competition=demo-digits", "--mle-cpus=0.5", "--mle-memory=500MB"]
    session = subprocess.Popen(command, cwd=tmp_path, env=os.environ | {"DOCKER_HOST": address})
    attempts = tmp_path / "mle-runs/r/demo-digits/seed0"

    def phase(number: int) -> str | None:
        record = attempts / f"attempt{number}" / "record.json"
        return json.loads(record.read_text())["phase"] if record.exists() else None

    try:
        assert wait_until(lambda: phase(1) == "running", 120)
        own_engine.kill()
        assert wait_until(lambda: phase(2) == "waiting", 120)
        assert phase(1) == "error"
        own_engine("start")
        assert session.wait(180) == 0
    finally:
        session.kill()
        own_engine("start")
    assert phase(2) == "graded"
    assert sorted(path.name for path in attempts.glob("attempt*")) == ["attempt1", "attempt2"]
