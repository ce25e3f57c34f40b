"""What docs/models.md shows and names is so."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_mlebench.agents.agent_toml import read_agent
from pytest_mlebench.budget import Budget, parse_budget
from pytest_mlebench.gateway import (
    agent_connection,
    calls,
    own_usage,
    proxy,
    run_account,
    transcripts,
)
from pytest_mlebench.gateway import gateway as gateway_module
from pytest_mlebench.reports.cost_text import costs_line
from pytest_mlebench.reports.costs import Costs
from pytest_mlebench.upstream import DEFAULT_VARIABLES, Price, Variables

TEXT = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


def test_the_first_agent_is_one(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(blocks("toml")[0])
    agent = read_agent(tmp_path / "agent.toml")
    assert [(one.name, one.protocol) for one in agent.models] == [
        ("openai", "openai"),
        ("anthropic", "anthropic"),
    ]
    assert agent.budget == Budget(usd=20, tokens=5_000_000, calls=2_000, session_usd=250)


def test_the_agent_with_a_server_of_its_own_is_one(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(blocks("toml")[1])
    (local,) = read_agent(tmp_path / "agent.toml").models
    assert local.variables == Variables(("LOCAL_URL",), ("LOCAL_KEY",))
    assert local.timeout_seconds == 1800
    assert local.price("anything") == Price(0.5, 2.0, 0.05, 0.6)
    assert local.key == ""


def test_the_variables_are_those_of_the_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \|$", TEXT, flags=re.MULTILINE)
    shown = {
        protocol: Variables(tuple(re.findall(r"\w+", urls)), tuple(re.findall(r"\w+", keys)))
        for protocol, urls, keys in rows
    }
    assert shown == DEFAULT_VARIABLES


def test_the_amounts_are_read() -> None:
    for text in ("20usd", "5Mtok", "2000calls"):
        assert text in TEXT
        assert parse_budget(text)


def test_the_usage_of_an_agents_own_is_read() -> None:
    usage = own_usage.parse_own_usage(blocks("json")[0].encode())
    assert (usage.tokens, usage.usd, usage.steps) == (128_000, 1.25, 40)
    assert set(usage.models) == {"gpt-5"}


def test_figures_and_names_are_those_of_the_code() -> None:
    assert f"127.0.0.1:{gateway_module.PORT}/" in TEXT
    assert f"{agent_connection.MAX_REQUEST_BYTES >> 20} MB, are not compressed" in TEXT
    assert f"{proxy.MAX_IN_FLIGHT} calls are" in TEXT
    assert f"cut at {transcripts.MAX_TEXT_BYTES >> 20} MB" in TEXT
    assert f"ends at {transcripts.MAX_FILE_BYTES >> 20} MB" in TEXT
    assert f"at most {own_usage.MAX_MODELS} models" in TEXT
    assert f"up to {gateway_module.CLOSING_SECONDS:.0f} seconds for calls under way" in TEXT
    for name in (calls.FILE, transcripts.FILE, run_account.FILE, own_usage.FILE):
        assert f"`{name}`" in TEXT


def test_the_line_of_the_summary_is_what_such_costs_show() -> None:
    costs = Costs(
        attempts=68,
        without_figures=2,
        input_tokens=30_000_000,
        output_tokens=1_200_000,
        known_usd=214.10,
        medals=44,
    )
    line = f"    {costs_line(costs)}\n"
    assert line in TEXT
    assert line in (Path(__file__).parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")
