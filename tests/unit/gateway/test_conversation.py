"""Transcripts are shown as conversations, whatever protocol they are in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_mlebench.gateway import conversation
from pytest_mlebench.gateway.conversation import Exchange, Turn, exchanges
from pytest_mlebench.gateway.transcripts import Transcript


def transcript(request: Any, response: Any) -> Transcript:
    texts = [text if isinstance(text, str) else json.dumps(text) for text in (request, response)]
    return Transcript(1.0, "up", "gpt-5", "POST", "/chat", 200, *texts, 1, 1)


def shown(request: Any, response: Any = "") -> Exchange:
    (found,) = exchanges([transcript(request, response)])
    return found


def stream(*events: Any) -> str:
    return "".join(f"event: x\r\ndata: {json.dumps(event)}\r\n\r\n" for event in events)


def test_every_turn_is_shown_where_it_is_new() -> None:
    first = {
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
    }
    more = [{"role": "assistant", "content": "hello"}, {"role": "user", "content": "bye"}]
    second = {"messages": [*first["messages"], *more]}
    one, two = exchanges([transcript(first, ""), transcript(second, "")])
    assert one.turns == (Turn("system", "be brief"), Turn("user", "hi"))
    assert two.turns == (Turn("assistant", "hello"), Turn("user", "bye"))


@pytest.mark.parametrize(
    "request_body",
    [
        {
            "system": "rules",
            "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}],
        },
        {"instructions": "rules", "input": "q"},
        {
            "systemInstruction": {"parts": [{"text": "rules"}]},
            "contents": [{"role": "user", "parts": [{"text": "q"}]}],
        },
    ],
)
def test_what_was_asked_in_all_protocols(request_body: dict[str, Any]) -> None:
    assert shown(request_body).turns == (Turn("system", "rules"), Turn("user", "q"))


@pytest.mark.parametrize(
    "response",
    [
        {"choices": [{"message": {"content": "well, yes"}}]},
        {
            "output": [
                {"type": "message", "content": [{"type": "output_text", "text": "well, yes"}]}
            ]
        },
        {"content": [{"type": "text", "text": "well, yes"}]},
        {"candidates": [{"content": {"parts": [{"text": "well, yes"}]}}]},
        stream(*({"choices": [{"delta": {"content": word}}]} for word in ("well, ", "yes"))),
        stream(*({"type": "response.output_text.delta", "delta": w} for w in ("well, ", "yes"))),
        stream(*({"delta": {"type": "text_delta", "text": w}} for w in ("well, ", "yes"))),
        stream(
            *({"candidates": [{"content": {"parts": [{"text": w}]}}]} for w in ("well, ", "yes"))
        ),
    ],
)
def test_what_was_answered_in_all_protocols(response: Any) -> None:
    assert shown({}, response).answer == "well, yes"


def test_calls_of_tools_are_part_of_what_was_said() -> None:
    call = {"type": "function", "function": {"name": "run", "arguments": "{}"}}
    body = {"choices": [{"message": {"content": None, "tool_calls": [call]}}]}
    assert json.loads(shown({}, body).answer) == [call]
    use = {"type": "tool_use", "id": "1", "name": "run", "input": {"code": "1"}}
    assert json.loads(shown({}, {"content": [use]}).answer) == use


@pytest.mark.parametrize("text", ["--x\r\nsome form", "[" * 100_000, '{"messages": 3}', "data: x"])
def test_what_is_not_understood_is_shown_as_it_is(text: str) -> None:
    found = shown(text, text)
    assert text.removeprefix('{"messages": ').removesuffix("}") in found.turns[0].text
    assert found.answer == text


def test_a_turn_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "MAX_TURN_LETTERS", 10)
    assert shown({"input": "x" * 25}).turns == (Turn("user", "x" * 10 + "\n… 15 letters more"),)


def test_an_exchange_is_a_text() -> None:
    text = shown({"input": "q"}, {"choices": [{"message": {"content": "a"}}]}).describe()
    assert text == "== POST /chat gpt-5 -> 200\n[user]\nq\n[answer]\na\n"
