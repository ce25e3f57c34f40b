"""Sessions that end in the middle of a call of a model: nothing is left, and nothing is made up."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from gateway_attempt import CALL_USD, REFERENCE, VARIABLE
from model_server import KEY, ModelServer
from plugin_session import Session
from sandbox_job import wait_until

from pytest_mlebench.reports.report import Report

# one whole call, then one that stops in the middle; by the second try the model answers
HALFWAY = """
    import http.client, json, os, shutil, urllib.parse
    url = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
    print(os.environ["OPENAI_BASE_URL"], flush=True)
    for model in ("gpt-5", "stall-midway"):
        connection = http.client.HTTPConnection(url.hostname, url.port)
        body = json.dumps({"model": model, "stream": True})
        headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
        connection.request("POST", url.path + "/chat/completions", body, headers)
        connection.getresponse().read()
    shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
                os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""
WORD = f"halfway-{os.getpid()}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A local upstream, whose real key is in our own environment."""
    monkeypatch.setenv(VARIABLE, KEY)
    with ModelServer() as server:
        yield server


@pytest.fixture
def halfway(session: Session, server: ModelServer) -> subprocess.Popen[bytes]:
    """A session whose agent is in the middle of its second call."""
    folder = session.path / "halfway"
    folder.mkdir()
    (folder / "halfway.py").write_text(textwrap.dedent(HALFWAY))
    (folder / "agent.toml").write_text(
        f'name = "halfway"\ncommand = "python halfway.py {WORD}"\n'
        f'[models.openai]\nurl = "{server.url}/v1"\nkey = "{REFERENCE}"\n'
        '[models.openai.prices."*"]\ninput = 1\noutput = 10\ncached = 0.1\n'
        "[budget]\nsession_usd = 1\n"
    )
    command = [sys.executable, "-m", "pytest", "--mle-agent=halfway", "--mle-run=r"]
    with (session.path / "output").open("w") as output:
        process = subprocess.Popen(
            [*command, "--mle-competition=demo-digits"],
            cwd=session.path,
            stdout=output,
            stderr=output,
        )
    for _ in range(2):  # both calls have begun
        assert server.begun.acquire(timeout=120), (session.path / "output").read_text()
    attempt = session.path / "mle-runs/r/demo-digits/seed0/attempt1"
    assert wait_until((attempt / "calls.jsonl").exists, 60)  # the first is written down
    return process


def spending(session: Session) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((session.path / "mle-runs/r/spending.json").read_text())
    return content


def test_a_killed_session_takes_its_gateway_along_and_what_was_under_way_is_not_zero(
    session: Session,
    server: ModelServer,
    halfway: subprocess.Popen[bytes],
    processes: Callable[[str], list[int]],
) -> None:
    attempt = session.path / "mle-runs/r/demo-digits/seed0/attempt1"
    assert wait_until(lambda: "http" in (attempt / "run.log").read_text(), 60)
    os.kill(halfway.pid, signal.SIGKILL)
    halfway.wait()
    assert server.gone.wait(60)  # the upstream notices
    assert wait_until(lambda: not processes(WORD), 60)
    assert [path for path in session.path.rglob("*") if path.is_socket()] == []
    address = urlsplit((attempt / "run.log").read_text().split()[0])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.hostname, address.port))

    (cut_off,) = Report.from_run(session.path / "mle-runs/r").results
    assert cut_off.model_use is not None
    assert (cut_off.model_use.usd, cut_off.model_use.known_usd) == (None, CALL_USD)

    server.release()  # the next try gets its answers
    result = session.alone("--mle-agent=halfway", "--mle-run=r", "--mle-fail-over=1usd")
    result.assert_outcomes(passed=1)
    (found,) = session.report("mle-runs/r/report.json")["results"]
    assert found["model_use"]["usd"] == pytest.approx(2 * CALL_USD)
    assert found["lost_usd"] is None
    result.stdout.fnmatch_lines(["missed: *there are discarded tries of unknown cost*"])
    assert spending(session)["held"] == {}  # what the killed one held is free again
    assert float(spending(session)["spent_usd"]) == pytest.approx(3 * CALL_USD)


def test_a_session_that_is_told_to_end_counts_what_is_under_way(
    session: Session, server: ModelServer, halfway: subprocess.Popen[bytes]
) -> None:
    halfway.send_signal(signal.SIGTERM)
    server.release()
    assert halfway.wait(120) == pytest.ExitCode.INTERRUPTED
    (found,) = session.report("mle-runs/r/report.json")["results"]
    assert found["outcome"] == "missing"
    assert found["model_use"]["metered"]["calls"] == 2
    assert found["model_use"]["usd"] == pytest.approx(2 * CALL_USD)
    text = (session.path / "output").read_text()
    assert "models: 240 tokens, $0.00053" in text
    assert not [path for path in Path(session.path).rglob("*") if path.is_socket()]
