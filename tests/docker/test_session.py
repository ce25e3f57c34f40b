"""A whole session: pytest with an agent in containers, plain and on two workers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from docker_engines import OwnEngine
from docker_images import BUSYBOX, ensure_clients
from gateway_attempt import REFERENCE, VARIABLE
from model_agents import CALLER, HEARD, SEEKER, SPENDER, TREE_SEARCH
from model_server import KEY, ModelServer
from sandbox_job import wait_until

from pytest_mlebench.sandbox.docker import Engine

IDS = ("demo-wine-cultivars", "demo-tumour-diagnosis")
SCRIPT = (
    "cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv; "
    "/home/validate_submission.sh $SUBMISSION_DIR/submission.csv; "
    "find / -name 'answers*' 2>/dev/null"
)

METERED = (
    *("--mle-agent=agent", "--mle-competition=demo-digits", "--mle-run=r"),
    *("--mle-cpus=1", "--mle-memory=1GB", "--mle-budget=30calls,1usd", "--mle-transcripts=on"),
    *("--mle-fail-over=0.01usd", "--mle-report=r.html", "--junitxml=junit.xml"),
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


def test_a_session_whose_agent_calls_models_from_a_container(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real clients without a network, metered and bounded; the agent then looks for the key."""
    monkeypatch.setenv(VARIABLE, KEY)
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "main.py").write_text(CALLER + SPENDER + SEEKER)
    with ModelServer() as server:
        (tmp_path / "agent" / "agent.toml").write_text(
            f'name = "caller"\nimage = "{ensure_clients(engine.api)}"\nnetwork = "none"\n'
            f'command = ["python3", "main.py", "{KEY[:9]}", "{KEY[9:]}"]\n'
            f'[models.openai]\nurl = "{server.url}/v1"\nkey = "{REFERENCE}"\n'
            '[models.openai.prices."*"]\ninput = 1\noutput = 10\n'
            f'[models.anthropic]\nurl = "{server.url}"\nkey = "{REFERENCE}"\n'
            'protocol = "anthropic"\n'
            '[models.anthropic.prices."*"]\ninput = 3\noutput = 15\n'
        )
        result = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *METERED],
            cwd=tmp_path,
            env=os.environ | {"DOCKER_HOST": engine.address},
            capture_output=True,
            text=True,
            check=False,
        )
    attempt = tmp_path / "mle-runs/r/demo-digits/seed0/attempt1"
    log = (attempt / "run.log").read_text()
    assert json.loads((attempt / "artefacts/logs/heard.json").read_text()) == HEARD, log
    assert "its 30 calls are used up" in log
    assert log.splitlines()[-1] == "found []"
    (found,) = json.loads((tmp_path / "mle-runs/r/report.json").read_text())["results"]
    spent = found["model_use"]["metered"]
    assert (spent["calls"], spent["exhausted"], spent["unmetered"]) == (30, ["calls"], 0)
    fresh = {"openai": 100 + 200, "anthropic": 300 + 300}  # millionths of a dollar for each call
    by_model = {one["upstream"]: one["calls"] for one in spent["models"]}
    assert by_model == {"openai": 28, "anthropic": 2}
    usd = sum(calls * fresh[name] for name, calls in by_model.items()) / 1e6
    assert found["model_use"]["usd"] == pytest.approx(usd)
    assert "missed: " not in result.stdout
    assert "models: 3.6 k tokens, $0.0096" in result.stdout
    report = (tmp_path / "r.html").read_text()
    assert "none; through the gateway its models, and nothing else" in report
    assert KEY not in result.stdout + result.stderr
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path
        assert not path.is_socket()


CONFIG = """
aide:
  start: aide/start.sh
  dockerfile: aide/Dockerfile
  image: {image}
  kwargs_type: omegaconf
  kwargs:
    agent.steps: 3
    agent.code.model: gpt-5
  env_vars:
    TIME_LIMIT_SECS: 600
  models:
    openai:
      url: {url}/v1
      key: ${{{{ secrets.{variable} }}}}
      prices:
        "*": {{input: 1, output: 10}}
"""
SOLUTION = """
import os, shutil
print("accuracy", {accuracy})
{line}
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""


def _write_code(body: dict[str, Any]) -> str:
    """Answer as a model would that breaks its first draft and improves later ones."""
    said = body["messages"][-1]["content"]
    if said.startswith("Debug"):
        line, accuracy = "", 0.5
    else:
        line, accuracy = ("", 0.6) if said.startswith("Improve") else ("1 / 0", 0.4)
    return f"First think.\n```python{SOLUTION.format(line=line, accuracy=accuracy)}```\nDone."


def _review(body: dict[str, Any]) -> str:
    said = body["messages"][0]["content"]
    found = re.findall(r"accuracy ([\d.]+)", said)
    is_bug = "ZeroDivisionError" in said
    return json.dumps(
        {"is_bug": is_bug, "summary": "seen", "metric": None if is_bug else float(found[-1])}
    )


def test_a_tree_search_of_the_reference_runs_unchanged_through_the_gateway(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Declared as the reference does; it backs off after errors and reviews by a function call."""
    monkeypatch.setenv(VARIABLE, KEY)
    folder = tmp_path / "agents" / "aide"
    folder.mkdir(parents=True)
    (folder / "main.py").write_text(TREE_SEARCH)
    (folder / "start.sh").write_text('cd "$AGENT_DIR" && exec python3 main.py "$@"\n')
    (folder / "Dockerfile").write_text("FROM scratch\n")
    with ModelServer(reply=_write_code, tool_arguments=_review, failures=[429, 500, 503]) as server:
        image = ensure_clients(engine.api)
        text = CONFIG.format(image=image, url=server.url, variable=VARIABLE)
        (folder / "config.yaml").write_text(text)
        options = ("--mle-agent=aide", "--mle-competition=demo-digits", "--mle-run=r")
        limits = ("--mle-cpus=1", "--mle-memory=1GB", "--mle-network=none", "--mle-budget=1usd")
        result = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, *limits],
            cwd=tmp_path,
            env=os.environ | {"DOCKER_HOST": engine.address},
            capture_output=True,
            text=True,
            check=False,
        )
    attempt = tmp_path / "mle-runs/r/demo-digits/seed0/attempt1"
    log = (attempt / "run.log").read_text()
    assert result.returncode == 0, result.stdout + log
    assert log.splitlines() == [
        "waits after RateLimitError",
        "waits after InternalServerError",
        "waits after InternalServerError",
        "best 2 0.6",
    ]
    journal = json.loads((attempt / "artefacts/logs/journal.json").read_text())
    assert [(node["bug"], node["metric"]) for node in journal] == [
        (True, None),
        (False, 0.5),
        (False, 0.6),
    ]
    (found,) = json.loads((tmp_path / "mle-runs/r/report.json").read_text())["results"]
    spent = found["model_use"]["metered"]
    assert (spent["calls"], spent["errors"], spent["unmetered"]) == (9, 3, 0)
    assert found["model_use"]["tokens"] == 6 * 120
    assert (found["outcome"], KEY in log) == ("graded", False)
