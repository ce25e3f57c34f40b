"""Agents as processes reach their models, with and without a network, and never the real key."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gateway_attempt import VARIABLE, agent_of
from model_agents import CALLER, HEARD, SEEKER, SPENDER
from model_server import KEY, ModelServer
from sandbox_job import Finished, Place

from pytest_mlebench.attempts.keeping import HeldHere
from pytest_mlebench.budget import Budget
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.gateway.calls import read_calls
from pytest_mlebench.gateway.gateway import Gateway, open_gateway
from pytest_mlebench.host.demo_limits import demo_limits
from pytest_mlebench.sandbox.process import landlock
from pytest_mlebench.sandbox.process.process_sandbox import ProcessSandbox
from pytest_mlebench.sandbox.process.walls import strongest

NETWORKS = [
    "open",
    pytest.param(
        "none",
        marks=pytest.mark.skipif(
            "net" not in strongest(offline=True).kinds, reason="the kernel gives no namespaces"
        ),
    ),
]

Run = Callable[..., tuple[Finished, Gateway]]


@pytest.fixture
def run(tmp_path: Path, server: ModelServer) -> Run:
    """Run a program or a function in the sandbox, with a gateway to the local upstream."""
    place = Place(tmp_path)

    def run_it(
        *command: str,
        network: str = "open",
        budget: Budget | None = None,
        function: Callable[[Any], object] | None = None,
    ) -> tuple[Finished, Gateway]:
        agent = replace(
            agent_of(server, budget=budget),
            command=() if function else (sys.executable, "-c", *command),
            function=function,
        )
        sandbox = ProcessSandbox(grace_seconds=0.3)
        sandbox.preflight(agent, demo_limits(), network)
        job = place.job(agent, network=network, time_seconds=300)
        with open_gateway(agent, job.folder, run_account=HeldHere().run_account) as gateway:
            ending = sandbox.run(replace(job, services=(gateway,)))
        return Finished(job, ending), gateway

    return run_it


@pytest.mark.parametrize("network", NETWORKS)
def test_real_clients_find_their_models(run: Run, network: str, server: ModelServer) -> None:
    finished, gateway = run(CALLER, network=network)
    assert finished.outcome.exit_code == 0, finished.log
    heard = json.loads((finished.job.artefacts / "logs" / "heard.json").read_text())
    assert heard == HEARD
    summary = gateway.summary()
    assert (summary.calls, summary.errors, summary.unmetered) == (25, 0, 0)
    assert summary.usage.total_tokens == 25 * 120
    assert len(list(read_calls(finished.job.folder))) == 25
    assert {KEY in " ".join(seen.headers.values()) for seen in server.seen} == {True}


def test_a_function_finds_its_models(run: Run) -> None:
    def solve(context: Any) -> None:
        import openai

        answer = openai.OpenAI().chat.completions.create(
            model="gpt-5", messages=[{"role": "user", "content": "x"}]
        )
        sys.stdout.write(f"{answer.choices[0].message.content}\n")

    finished, gateway = run(function=solve)
    assert "Hello from the model.\n" in finished.log
    assert gateway.summary().calls == 1


@pytest.mark.parametrize("network", NETWORKS)
def test_an_exhausted_budget_ends_the_calls_and_not_the_attempt(run: Run, network: str) -> None:
    finished, gateway = run(SPENDER, network=network, budget=Budget(calls=7))
    assert finished.outcome.exit_code == 0
    assert "its 7 calls are used up" in finished.log
    assert finished.submission == "id,label,target\n1,7,7\n"
    assert gateway.summary().exhausted == ("calls",)


def test_the_hostile_agent_does_find_what_there_is_to_be_found(run: Run) -> None:
    finished, _ = run(SEEKER, "id,lab", "el\n0,0")
    assert "/data/train.csv'" in finished.log.splitlines()[-1]


@pytest.mark.skipif(not landlock.version(), reason="without Landlock the sandbox has no walls")
@pytest.mark.parametrize("network", NETWORKS)
def test_a_hostile_agent_does_not_find_the_real_key(run: Run, network: str, tmp_path: Path) -> None:
    finished, _ = run(SEEKER, KEY[:9], KEY[9:], f"in:{tmp_path}", network=network)
    lines = finished.log.splitlines()
    assert lines[-1] == "found []", finished.log
    assert int(lines[-2].split()[1]) > 100  # it has looked
    written = [path.read_bytes() for path in finished.job.folder.rglob("*") if path.is_file()]
    assert written
    assert not [text for text in written if KEY.encode() in text]


def test_a_key_that_is_not_exported_is_said_before_anything_runs(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(ConfigError, match=f"needs the environment variable {VARIABLE} "):
        ProcessSandbox().preflight(agent_of(server), demo_limits(), "open")
