"""Familiarity with texts, measured through an endpoint that gives log-probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import cli, complaint
from endpoint_server import EndpointServer, Fault, serving
from reporting import graded

from pytest_mlebench.audit.familiarity import correlation, measure, measure_all, plot
from pytest_mlebench.audit.model_endpoint import Endpoint
from pytest_mlebench.errors import ConfigError, InfrastructureError
from pytest_mlebench.medals import Medal
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.report import Report


def _answer(prompt: str) -> dict[str, Any]:
    value = math.log(max(prompt.count("e"), 1) / len(prompt))
    offsets = [at for at in range(len(prompt)) if at == 0 or prompt[at - 1] == " "]
    values = [None, *([value] * (len(offsets) - 1))]
    generated = {"token_logprobs": [*values, -9.0], "text_offset": [*offsets, len(prompt)]}
    return {"choices": [{"logprobs": generated}], "usage": {"completion_tokens": 1}}


@pytest.fixture
def server() -> Iterator[EndpointServer]:
    """Serve tokens, one for each word, each as probable as the share of e's in its prompt."""
    with serving(lambda body: _answer(body["prompt"])) as found:
        yield found


def _endpoint(server: EndpointServer, **changes: Any) -> Endpoint:
    return Endpoint(server.url, "m", "sk-1", sleep=lambda seconds: None, **changes)


def test_the_figure_is_the_mean_probability_of_the_texts_tokens(server: EndpointServer) -> None:
    found = measure(_endpoint(server), "tiny", ["we see the bee", "no"])
    assert (found.mean_probability, found.tokens) == (pytest.approx(6 / 14), 3)
    assert server.seen[0]["key"] == "Bearer sk-1"
    assert server.seen[0]["temperature"] == 0


def test_long_texts_are_asked_for_in_parts(server: EndpointServer) -> None:
    found = measure(_endpoint(server), "tiny", ["e " * 5_000])
    assert [len(each["prompt"]) for each in server.seen] == [6_000, 4_000]
    assert found.mean_probability == pytest.approx(0.5)


def test_it_waits_as_it_is_told_and_tries_again(server: EndpointServer) -> None:
    server.faults = [
        Fault(429, {"Retry-After": "7"}),
        Fault(500),
        Fault(content=b'{"choi'),
    ]
    waits: list[float] = []
    endpoint = Endpoint(server.url, "m", sleep=waits.append)
    assert measure(endpoint, "tiny", ["we see"]).tokens == 1
    assert waits == [7, 2, 4]


def test_what_stays_out_of_order_is_one_sentence(server: EndpointServer) -> None:
    server.faults = [Fault(503)] * 9
    with pytest.raises(InfrastructureError, match=r"does not answer \(status 503\): try again"):
        measure(_endpoint(server), "tiny", ["we see"])
    server.faults = [Fault(401, content=b"no  such key")]
    with pytest.raises(ConfigError, match="/completions: status 401: no such key"):
        measure(_endpoint(server), "tiny", ["we see"])
    server.faults = [Fault(content=b'{"choices": []}')]
    with pytest.raises(ConfigError, match="gives no log-probabilities of a prompt"):
        measure(_endpoint(server), "tiny", ["we see"])


def test_what_is_known_is_not_asked_for_again(server: EndpointServer, tmp_path: Path) -> None:
    kept, texts = tmp_path / "f.json", {"a": ["we see"], "b": ["the bee"], "c": ["no one"]}
    server.faults = [None, *[Fault(500)] * 5]
    with pytest.raises(InfrastructureError):
        measure_all(_endpoint(server), texts, kept, lambda text: None)
    server.seen.clear()
    found = measure_all(_endpoint(server), texts, kept, lambda text: None)
    assert [one.competition for one in found] == ["a", "b", "c"]
    assert [each["prompt"] for each in server.seen] == ["the bee", "no one"]
    with pytest.raises(ConfigError, match="is of the model 'm': choose another file"):
        measure_all(Endpoint(server.url, "other"), texts, kept, lambda text: None)


def test_ranks_are_correlated_with_percentiles(server: EndpointServer) -> None:
    texts = {"a": ["e e e e"], "b": ["e e e x"], "c": ["e x x x"]}
    found = measure_all(_endpoint(server), texts, None, lambda text: None)
    medals = {"a": Medal.GOLD, "b": Medal.SILVER, "c": Medal.NONE}
    results = [graded(name, 0, medal) for name, medal in medals.items()]
    result = correlation(found, results)
    assert result is not None
    assert (result.rho, result.competitions) == (pytest.approx(1), 3)
    assert correlation(found, results[:2]) is None
    assert plot(found, {"a": 95.0, "b": 85.0}, "<m>").count("<circle") == 2


def test_the_command_prints_a_table_and_draws(server: EndpointServer, tmp_path: Path) -> None:
    registry = Registry()
    results = [graded(name, 0, Medal.GOLD) for name in registry.split("demo")[:3]]
    Report.of(results, registry=registry).write(tmp_path / "r.json")
    where = ("--url", server.url, "--model", "m", "--run", tmp_path / "r.json")
    done = cli("familiarity", *where, "--plot", tmp_path / "p.svg", OPENAI_API_KEY="sk-2")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 6
    assert "too little varies for a rank correlation" in done.stdout
    assert (tmp_path / "p.svg").read_text().count("<circle") == 3
    assert {each["key"] for each in server.seen} == {"Bearer sk-2"}
    assert "must begin with http" in complaint("familiarity", "--url", "x", "--model", "m")
    plotting = ("--plot", tmp_path / "p.svg")
    assert "--plot needs --run" in complaint("familiarity", *where[:4], *plotting)
