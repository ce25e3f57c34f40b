"""What a call asks for is read in one way only, and checked before anything is passed on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_mlebench.budget import Budget
from pytest_mlebench.gateway.model_request import (
    ModelRequest,
    read_model_request,
    require_allowed,
)
from pytest_mlebench.gateway.prices import Prices
from pytest_mlebench.gateway.refusal import CallRefusal
from pytest_mlebench.gateway.routes import find_route
from pytest_mlebench.upstream import Price, Upstream

JSON = "application/json"
PRICES = {"priced": Price(input=3, output=9)}


def upstream(**more: Any) -> Upstream:
    return Upstream("up", "https://up.example/v1", **more)


def asking(
    body: bytes | dict[str, Any],
    path: str = "/chat/completions",
    *,
    content_type: str = JSON,
    method: str = "POST",
    where: Upstream | None = None,
) -> ModelRequest:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    route = find_route(f"/up/v1{path}", (where or upstream(),))
    return read_model_request(route, method, content_type, content)


def refusal(asked: ModelRequest, budget: Budget | None = None) -> str:
    with pytest.raises(CallRefusal) as error:
        require_allowed(asked, budget or Budget(), Prices(asked.route.upstream))
    assert error.value.kind == "permission"
    return str(error.value)


def allow(asked: ModelRequest, budget: Budget | None = None) -> None:
    require_allowed(asked, budget or Budget(), Prices(asked.route.upstream))


@pytest.mark.parametrize(
    "content_type", [JSON, "application/json; charset=utf-8", "text/plain", ""]
)
def test_an_object_is_read_whatever_the_agent_calls_it(content_type: str) -> None:
    asked = asking({"model": "m", "stream": True}, content_type=content_type)
    assert (asked.model, asked.is_stream) == ("m", True)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"model": "cheap", "model": "dear"}', "it has the key 'model' twice"),
        (b'{"model": "m", "a": {"x": 1, "x": 2}}', "it has the key 'x' twice"),
        (b'{"model": "m",}', "it is not valid JSON"),
        (b'\xef\xbb\xbf{"model": "m"}', "it is not valid JSON"),
        ('{"model": "m"}'.encode("utf-16"), "it is not valid JSON"),
        (b'{"a": ' * 100_000, "it is not valid JSON"),
        (b'{"model": "\xff"}', "it is not valid JSON"),
    ],
)
def test_a_body_that_can_be_read_in_two_ways_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(CallRefusal) as error:
        asking(body)
    assert error.value.kind == "bad_request"
    assert str(error.value) == f"the body is not understood: {reason}"


def test_the_name_of_a_model_is_not_endless() -> None:
    with pytest.raises(CallRefusal, match="the name of the model is too long"):
        asking({"model": "m" * 201})


def test_other_bodies_are_not_read() -> None:
    asked = asking(b"a=1&model=m", "/files", content_type="application/x-www-form-urlencoded")
    assert (asked.models, asked.message, asked.is_stream) == ((), {}, False)
    assert asking(b"", "/models", content_type="", method="GET").models == ()
    assert asking(b"[1, 2]").message == {}


def test_a_stream_of_completions_is_asked_for_its_usage_and_nothing_else_changes() -> None:
    body = b'\n {"messages":  [{"content": "\\u00fc"}],"stream":true, "seed": 1.50}'
    asked = asking(body).with_usage_asked_for()
    assert asked.asks_for_usage
    assert asked.body == body.replace(b"{", b'{"stream_options":{"include_usage":true},', 1)
    assert json.loads(asked.body)["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"include_usage": False, "x": 1}, {"include_usage": True, "x": 1}),
        ({"x": 1}, {"include_usage": True, "x": 1}),
        (None, {"include_usage": True}),
    ],
)
def test_options_of_the_agent_are_kept(options: Any, asked: dict[str, Any]) -> None:
    given = {"model": "ü", "stream": True, "stream_options": options}
    changed = asking(given).with_usage_asked_for()
    assert changed.asks_for_usage
    assert json.loads(changed.body) == given | {"stream_options": asked}


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"stream": True, "stream_options": {"include_usage": True}}, "/chat/completions"),
        ({"stream": False}, "/chat/completions"),
        ({"stream": True}, "/responses"),
        ({}, "/embeddings"),
    ],
)
def test_what_tells_its_usage_anyway_is_not_asked(body: dict[str, Any], path: str) -> None:
    asked = asking(body, path)
    assert asked.with_usage_asked_for() is asked


def test_only_models_that_are_allowed_are_called() -> None:
    where = upstream(allow=("gpt-5*", "tiny"))
    allow(asking({"model": "gpt-5-mini"}, where=where))
    allow(asking({"model": "tiny"}, where=where))
    assert refusal(asking({"model": "gpt-4"}, where=where)) == (
        "the model 'gpt-4' is not allowed: models.up allows gpt-5*, tiny"
    )
    assert refusal(asking({"model": "gpt-5", "models": ["gpt-4"]}, where=where)) == (
        "the model 'gpt-4' is not allowed: models.up allows gpt-5*, tiny"
    )
    path = "/deployments/gpt-4/chat/completions"
    assert "'gpt-4' is not allowed" in refusal(asking({"model": "tiny"}, path, where=where))
    assert refusal(asking({"input": "x"}, where=where)) == (
        "the call names no model, and models.up allows only gpt-5*, tiny"
    )
    assert "names no model" in refusal(asking(b"--x", content_type="x", where=where))


def test_what_runs_no_model_is_always_allowed() -> None:
    where = upstream(allow=("gpt-5*",))
    allow(asking(b"", "/models", method="GET", where=where))
    allow(asking({"input": "x"}, "/moderations", where=where))


@pytest.mark.parametrize("budget", [Budget(usd=1), Budget(session_usd=1)])
def test_a_budget_in_dollars_needs_a_price(budget: Budget) -> None:
    where = upstream(prices=PRICES)
    allow(asking({"model": "priced"}, where=where), budget)
    assert refusal(asking({"model": "other"}, where=where), budget) == (
        "the price of the model 'other' is not known, so that a budget in dollars cannot be held: "
        'give it in [models.up.prices."other"] of the agent\'s file'
    )
    allow(asking({"model": "other"}, where=where), Budget(tokens=1, calls=1))


def test_work_that_is_done_later_cannot_be_held_against_a_budget() -> None:
    asked = asking({"model": "m", "background": True}, "/responses")
    allow(asked, Budget(calls=3))
    assert refusal(asked, Budget(tokens=5000)) == (
        "work that is done later never shows its usage here, so that the budget (5ktok) could not "
        "be held: ask for an answer at once"
    )
