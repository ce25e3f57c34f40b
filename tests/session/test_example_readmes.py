"""Every command of every README in examples/ works."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from model_server import KEY, ModelServer
from plugin_session import Session

from pytest_mlebench.cli import main
from pytest_mlebench.sandbox.process.walls import strongest

EXAMPLES = Path(__file__).parents[2] / "examples"

# The client of a service that is not installed: it notes what it is given in a file.
STAND_IN = """
import contextlib, json

run = None

def note(*what):
    with open("noted.jsonl", "a") as file:
        file.write(json.dumps(what) + "\\n")

@contextlib.contextmanager
def start_run(run_name):
    note("start_run", run_name)
    yield

def init(project, job_type):
    global run
    run = project
    note("init", project, job_type)

def log_params(params): note("log_params", params)
def log_metric(key, value): note("log_metric", key, value)
def log_artifact(path): note("log_artifact", path)
def log(facts): note("log", facts)
"""


def commands(example: str) -> list[tuple[dict[str, str], list[str]]]:
    """Return the commands of a README: variables set for it, and words."""
    text = (EXAMPLES / example / "README.md").read_text(encoding="utf-8")
    found = []
    for line in re.findall(r"^    (\S.*)$", text, re.MULTILINE):
        words = shlex.split(line.partition("  #")[0])
        variables = dict(w.split("=", 1) for w in words if re.match(r"[A-Z_]+=", w))
        found.append((variables, [w for w in words if not re.match(r"[A-Z_]+=", w)]))
    return found


def copied(example: str, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EXAMPLES / example, session.path, dirs_exist_ok=True)
    monkeypatch.chdir(session.path)


def typed(session: Session, words: list[str]) -> None:
    """Run a command and require that it ends well."""
    if words[0] == "pytest":
        result = session.run(*words[1:])
        assert result.ret == 0, result.stdout.str()
    else:
        assert main(words[1:]) == 0, words


@pytest.mark.slow
def test_the_repository_of_own_competitions(
    session: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MLEBENCH_DATA_DIR", str(tmp_path / "store"))
    copied("own-competitions", session, monkeypatch)
    for _, words in commands("own-competitions"):
        typed(session, words)


@pytest.mark.slow
def test_the_agent_repository(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    copied("agent-repo", session, monkeypatch)
    for _, words in commands("agent-repo"):
        typed(session, words)


SOLUTION = """```python
import os, shutil
data, out = os.environ["DATA_DIR"], os.environ["SUBMISSION_DIR"]
shutil.copy(f"{data}/sample_submission.csv", f"{out}/submission.csv")
```"""


@pytest.mark.skipif(
    "net" not in strongest(offline=True).kinds, reason="the kernel gives no namespaces"
)
def test_the_agent_that_calls_a_model(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = session.path / "examples" / "model-agent"
    shutil.copytree(EXAMPLES / "model-agent", folder)
    monkeypatch.chdir(session.path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ModelServer(reply=lambda _: SOLUTION) as server:
        file = folder / "agent.toml"
        text = file.read_text().replace("https://api.openai.com/v1", f"{server.url}/v1")
        file.write_text(text + '\n[models.openai.prices."*"]\ninput = 1.0\noutput = 1.0\n')
        for _, words in commands("model-agent"):
            if words[0] == "pytest":
                result = session.run(*words[1:], "-k", "digits")
                assert result.ret == 0, result.stdout.str()
                result.assert_outcomes(passed=1, deselected=5)
            elif words[0] != "export":  # a key is there
                subprocess.run(["bash", "-c", " ".join(words)], check=True, capture_output=True)


@pytest.fixture
def chat() -> Iterator[tuple[str, list[str]]]:
    """A chat's webhook on this machine, and what was posted to it."""
    posted: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.append(json.loads(body)["text"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", posted
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("number", "passed"), [(0, 1), (1, 1), (2, 1), (3, 1), (4, None)],
    ids=["slack", "mlflow", "wandb", "skip", "sample"],
)  # fmt: skip
def test_the_cookbook_of_hooks(
    session: Session,
    monkeypatch: pytest.MonkeyPatch,
    chat: tuple[str, list[str]],
    number: int,
    passed: int | None,
) -> None:
    copied("hooks", session, monkeypatch)
    variables, words = commands("hooks")[number]
    webhook, posted = chat
    for name, value in variables.items():
        monkeypatch.setenv(name, value.replace("$WEBHOOK", webhook))
    for module in ("mlflow", "wandb"):
        (session.path / f"{module}.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(session.path)
    result = session.run(*words[1:], "--mle-report=report.json")
    assert result.ret == 0, result.stdout.str()
    assert session.report()["disclosure"]["extra"] == {"team": "unknown"}
    if passed is not None:
        result.assert_outcomes(passed=passed)
    noted = session.path / "noted.jsonl"
    calls = [json.loads(line) for line in noted.read_text().splitlines()] if noted.is_file() else []
    if "SLACK_WEBHOOK" in variables:
        assert posted[-1] == "0 medals, exit status 0"
    if "MLFLOW_TRACKING_URI" in variables:
        assert [call[0] for call in calls][:2] == ["start_run", "log_params"]
        assert any(call[:2] == ["log_metric", "score"] for call in calls)
    if "WANDB_PROJECT" in variables:
        assert calls[0] == ["init", "agents", "mle-bench"]
        assert "demo-digits/score" in calls[1][1]
    if "SAMPLE_PERCENT" in variables:
        outcomes = result.parseoutcomes()
        assert 0 < outcomes["passed"] < 6
        assert outcomes["passed"] + outcomes["deselected"] == 6


def test_every_example_has_a_readme_with_commands() -> None:
    for folder in EXAMPLES.iterdir():
        if folder.is_dir():
            assert commands(folder.name), folder.name
