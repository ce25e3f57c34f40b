"""The example of an agent that calls a model works as it is, with a model that errs at first."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from model_server import KEY, ModelServer
from sandbox_job import Place

from pytest_mlebench.agents.agent_toml import read_agent
from pytest_mlebench.attempts.keeping import HeldHere
from pytest_mlebench.budget import Budget
from pytest_mlebench.gateway.gateway import open_gateway
from pytest_mlebench.sandbox.process.process_sandbox import ProcessSandbox
from pytest_mlebench.sandbox.process.walls import strongest

EXAMPLE = Path(__file__).parents[3] / "examples" / "model-agent"

WRONG = "Sure!\n```python\nimport no_such_module\n```"
INVALID = """```python
import os
open(os.environ["SUBMISSION_DIR"] + "/submission.csv", "w").write("id,wrong\\n1,0\\n")
```"""
RIGHT = INVALID.replace("wrong", "label")


def reply(body: dict[str, Any]) -> str:
    """Learn from what went wrong before."""
    told = body["messages"][-1]["content"]
    if "Submission invalid! column 'label' is missing" in told:
        return RIGHT
    return INVALID if "No module named 'no_such_module'" in told else WRONG


@pytest.mark.skipif(
    "net" not in strongest(offline=True).kinds, reason="the kernel gives no namespaces"
)
@pytest.mark.parametrize(("calls", "lines"), [(100, 3), (2, 2)])
def test_the_example_learns_from_its_errors_as_long_as_its_budget_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int, lines: int
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert shutil.which("python") is not None
    agent = read_agent(EXAMPLE / "agent.toml")
    assert (agent.network, agent.budget) == ("none", Budget(usd=2.0, calls=100))
    place = Place(tmp_path)
    with ModelServer(reply=reply) as server:
        upstream = replace(agent.models[0], url=f"{server.url}/v1")
        job = place.job(replace(agent, models=(upstream,)), network="none", time_seconds=300)
        budget = Budget(calls=calls)
        with open_gateway(
            job.agent, job.folder, run_account=HeldHere().run_account, budget=budget
        ) as gateway:
            ProcessSandbox(grace_seconds=0.3).run(replace(job, services=(gateway,)))
    log = job.log.read_text()
    assert gateway.summary().calls == lines, log
    assert "step 0: The program failed:" in log
    assert "step 1: The program ran." in log
    if calls == 100:
        assert "step 2: The program ran. " in log
        assert job.submission.read_text() == "id,label\n1,0\n"
    else:
        assert "step 2: no answer: Error code: 429" in log
        assert job.submission.read_text() == "id,wrong\n1,0\n"
    assert {seen.json["model"] for seen in server.seen} == {"gpt-5-mini"}
