"""The most that a call may use is a bound, not a guess: a budget is as exact as this is true."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from pytest_mlebench.budget import Budget
from pytest_mlebench.gateway.call_bounds import (
    HIDDEN_TOKENS,
    MAX_CONTEXT_TOKENS,
    MAX_OUTPUT_TOKENS,
    hold_for,
)
from pytest_mlebench.gateway.model_request import ModelRequest, read_model_request
from pytest_mlebench.gateway.prices import Prices
from pytest_mlebench.gateway.routes import find_route
from pytest_mlebench.gateway.spending import Usage
from pytest_mlebench.gateway.usage_readers import Reading
from pytest_mlebench.upstream import Price, Upstream

UP = Upstream("up", "https://up.example/v1", prices={"priced": Price(input=3, output=9)})
TOKENS = Budget(tokens=1)


def asking(
    body: dict[str, Any], path: str = "/chat/completions", method: str = "POST"
) -> ModelRequest:
    route = find_route(f"/up/v1{path}", (UP,))
    content = json.dumps({"model": "priced"} | body).encode()
    return read_model_request(route, method, "application/json", content)


def hold(asked: ModelRequest, budget: Budget = TOKENS, largest: int = 0) -> tuple[int, Decimal]:
    found = hold_for(asked, budget, Prices(asked.route.upstream), largest)
    return found.tokens, found.usd


def test_a_token_has_at_least_one_byte() -> None:
    asked = asking({"max_tokens": 1_000, "text": "x" * 3_000})
    given = len(asked.body) + HIDDEN_TOKENS
    dollars = (Decimal(given) * 3 + Decimal(1_000) * 9) / 1_000_000
    assert hold(asked, Budget(usd=1)) == (given + 1_000, dollars)
    short, long = (hold(asking({"max_tokens": n, "n": 4}))[0] for n in (10, 20))
    assert long - short == 40


def test_an_answer_of_unknown_size_may_be_as_long_as_models_can_make_one() -> None:
    asked = asking({})
    given = len(asked.body) + HIDDEN_TOKENS
    assert hold(asked)[0] == given + MAX_OUTPUT_TOKENS
    assert hold(asked, largest=900_000)[0] == given + 900_000
    assert hold(asking({"input": "xxx"}, "/embeddings"))[0] < given + 100


def test_no_input_is_larger_than_a_context() -> None:
    picture = asking({"max_tokens": 5, "x": "x" * 9_000_000})
    assert hold(picture)[0] == MAX_CONTEXT_TOKENS + 5


@pytest.mark.parametrize(
    "content",
    [
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "input_file", "file_url": "https://example.org/long.pdf"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "document", "source": {"type": "url", "url": "https://example.org/long.pdf"}},
        {"fileData": {"fileUri": "https://example.org/files/1"}},
    ],
)
def test_what_a_call_refers_to_may_fill_the_context(content: dict[str, Any]) -> None:
    asked = asking({"max_tokens": 5, "messages": [{"role": "user", "content": [content]}]})
    assert hold(asked)[0] == MAX_CONTEXT_TOKENS + 5


def test_what_is_in_the_body_does_not() -> None:
    inline = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    tool = {"type": "function", "function": {"parameters": {"properties": {"url": {}}}}}
    asked = asking({"max_tokens": 5, "messages": [{"content": [inline]}], "tools": [tool]})
    assert hold(asked)[0] == len(asked.body) + HIDDEN_TOKENS + 5


def test_dollars_are_those_of_the_dearest_way_to_serve_a_call() -> None:
    written = {"m": Price(input=1, output=1, cache_written=2)}
    assert Prices(Upstream("up", "https://up.example/v1", prices=written)).bound("m", 100, 0) == (
        Decimal(200) / 1_000_000
    )
    listed = Prices(Upstream("up", "https://api.openai.com/v1"))
    plain = listed.cost("gpt-5", Reading(Usage(output_tokens=1_000)))
    assert plain is not None
    assert listed.bound("gpt-5", 0, 1_000) > plain  # a project may have chosen priority
    claude = Prices(Upstream("up", "https://api.anthropic.com", protocol="anthropic"))
    fresh = claude.cost("claude-opus-4-5", Reading(Usage(input_tokens=1_000)))
    assert fresh is not None
    assert claude.bound("claude-opus-4-5", 1_000, 0) > fresh  # to keep it in a cache is dearer


def test_without_a_budget_or_a_cost_nothing_is_held() -> None:
    for budget in (Budget(), Budget(calls=1)):
        assert hold(asking({"max_tokens": 10}), budget) == (0, 0)
    assert hold(asking({}, "/models", "GET")) == (0, 0)
