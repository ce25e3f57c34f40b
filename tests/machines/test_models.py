"""Agents on other hosts that call models: figures as they grow, budgets, and keys on no disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gateway_attempt import CALL_USD, REFERENCE, VARIABLE
from host_machines import TWO, HostMachines, RunningSession
from model_agents import COUNTING
from model_server import KEY, ModelServer
from sandbox_job import wait_until

from pytest_mlebench.attempts.live_spending import LiveSpending
from pytest_mlebench.attempts.record import read_attempts
from pytest_mlebench.layout import RunFolder

Start = Callable[..., RunningSession]


@pytest.fixture
def server(hosts: HostMachines, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A local upstream that the hosts reach, whose real key is in our own environment."""
    monkeypatch.setenv(VARIABLE, KEY)
    with ModelServer(address=hosts.address) as server:
        yield server


def write_agent(path: Path, server: ModelServer, budget: str, model: str = "gpt-5") -> str:
    folder = path / "counting"
    folder.mkdir()
    (folder / "counting.py").write_text(COUNTING)
    (folder / "agent.toml").write_text(
        f"""
        command = ["bash", "-c", "python $AGENT_DIR/counting.py"]
        [env]
        CALLS = "8"
        MODEL = "{model}"
        [models.openai]
        url = "{server.url}/v1"
        key = "{REFERENCE}"
        [models.openai.prices."*"]
        input = 1
        output = 10
        cached = 0.1
        [budget]
        {budget}
        """
    )
    return "--mle-agent=counting"


def test_attempts_on_all_hosts_share_the_dollars_of_the_run(
    hosts: HostMachines, server: ModelServer, start: Start, tmp_path: Path
) -> None:
    agent = write_agent(tmp_path, server, f"session_usd = {CALL_USD * 9.5}\ncalls = 6")
    session = start(agent, hosts.write_toml(tmp_path / "hosts.toml"), *TWO, "--mle-seeds=2")
    assert session.end() == 0, session.text
    uses = [each["model_use"]["metered"] for each in session.report()["results"]]
    assert sum(use["calls"] for use in uses) == 10  # the last one goes beyond, and no other
    assert max(use["calls"] for use in uses) <= 6  # and each has a budget of its own
    exhausted = [bound for use in uses for bound in use["exhausted"]]
    assert exhausted.count("session_usd") >= 1
    machines = {record["conditions"]["machine"] for record in session.records().values()}
    assert len(machines) > 1
    assert hosts.leftovers() == []
    for name in hosts.names:
        for root, _, files in os.walk(hosts.disk(name)):
            if "/.pyenv" not in root and "/.cache/" not in root:
                assert not [
                    file for file in files if KEY.encode() in (Path(root) / file).read_bytes()
                ]


def test_progress_shows_what_an_attempt_elsewhere_has_spent_so_far(
    hosts: HostMachines, server: ModelServer, start: Start, tmp_path: Path
) -> None:
    agent = write_agent(tmp_path, server, "usd = 1", model="stall-after-3")
    session = start(agent, hosts.write_toml(tmp_path / "hosts.toml"), TWO[0])
    spending = LiveSpending()

    def shown() -> str | None:
        seed = RunFolder(session.run).seed("demo-digits", 0)
        return spending.text(read_attempts(seed))

    assert wait_until(lambda: shown() == "$0.00079 on models (360 tokens)", 240), session.text
    assert session.running()  # it is still under way
    server.release()
    assert session.end() == 0, session.text
    assert shown() == "$0.0021 on models (960 tokens)"
