"""Usage, models and refusals in each provider's own words."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_mlebench.gateway.dialects import DIALECTS
from pytest_mlebench.gateway.refusal import STATUS, CallRefusal
from pytest_mlebench.gateway.spending import Usage
from pytest_mlebench.upstream import Protocol

OPENAI, ANTHROPIC, GEMINI = (DIALECTS[name] for name in ("openai", "anthropic", "gemini"))


@pytest.mark.parametrize(
    ("fields", "usage"),
    [
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "total_tokens": 120,
                "prompt_tokens_details": {"cached_tokens": 40, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
            Usage(100, 40, 0, 20, 5),
        ),
        (
            {
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 10},
                "output_tokens": 20,
                "output_tokens_details": {"reasoning_tokens": 5},
                "total_tokens": 120,
            },
            Usage(100, 40, 10, 20, 5),
        ),
        ({"prompt_tokens": 8, "total_tokens": 8}, Usage(8)),  # embeddings
        (
            {"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 4},  # DeepSeek
            Usage(10, 4, 0, 2),
        ),
        (
            {  # xAI: reasoning is in the total, not in the completion
                "prompt_tokens": 10,
                "completion_tokens": 2,
                "total_tokens": 42,
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            Usage(10, 0, 0, 32, 30),
        ),
        ({"prompt_tokens": 10, "prompt_tokens_details": None}, Usage(10)),
        ({"completion_tokens": 2}, None),
        ({"prompt_tokens": "10"}, None),
        ({"prompt_tokens": True}, None),
        ({"prompt_tokens": -1}, None),
        ({"prompt_tokens": 10**30}, None),
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 50}}, Usage(5, 5)),
    ],
)
def test_openai_usage(fields: dict[str, Any], usage: Usage | None) -> None:
    assert OPENAI.usage(fields) == usage


def test_anthropic_counts_cached_input_apart() -> None:
    fields = {
        "input_tokens": 60,
        "cache_read_input_tokens": 30,
        "cache_creation_input_tokens": 10,
        "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 6},
        "output_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 5},
    }
    assert ANTHROPIC.usage(fields) == Usage(100, 30, 10, 20, 5)
    assert ANTHROPIC.hour_cache_tokens(fields) == 6
    assert ANTHROPIC.usage({"output_tokens": 3}) is None


def test_gemini_counts_thoughts_apart() -> None:
    fields = {
        "promptTokenCount": 90,
        "toolUsePromptTokenCount": 10,
        "cachedContentTokenCount": 40,
        "candidatesTokenCount": 15,
        "thoughtsTokenCount": 5,
        "totalTokenCount": 120,
    }
    assert GEMINI.usage(fields) == Usage(100, 40, 0, 20, 5)
    assert GEMINI.usage({"totalTokenCount": 3}) is None


@pytest.mark.parametrize(
    ("protocol", "path", "body", "models"),
    [
        ("openai", "/chat/completions", {"model": "gpt-5"}, ["gpt-5"]),
        ("openai", "/files", {}, []),
        ("openai", "/chat/completions", {"model": 5}, []),
        ("openai", "/chat/completions", {"model": "a", "models": ["b", 3, "c"]}, ["a", "b", "c"]),
        ("openai", "/deployments/dear/chat/completions", {"model": "cheap"}, ["dear", "cheap"]),
        ("anthropic", "/v1/messages", {"model": "claude"}, ["claude"]),
        ("gemini", "/v1beta/models/gemini-2.5-pro:generateContent", {}, ["gemini-2.5-pro"]),
        ("gemini", "/v1beta/tunedModels/mine:generateContent", {}, ["tunedModels/mine"]),
        ("gemini", "/v1beta/cachedContents", {"model": "models/gemini-x"}, ["gemini-x"]),
    ],
)
def test_the_models_that_a_call_may_run(
    protocol: Protocol, path: str, body: dict[str, Any], models: list[str]
) -> None:
    assert list(DIALECTS[protocol].models(path, body)) == models


@pytest.mark.parametrize(
    ("protocol", "path", "body", "bound", "answers"),
    [
        ("openai", "/chat/completions", {"max_tokens": 10}, 10, 1),
        ("openai", "/chat/completions", {"max_completion_tokens": 1, "max_tokens": 9}, 9, 1),
        ("openai", "/chat/completions", {"max_tokens": 10, "n": 3}, 10, 3),
        ("openai", "/chat/completions", {"max_output_tokens": 1}, None, 1),  # not read there
        ("openai", "/completions", {"max_tokens": 10, "n": 1, "best_of": 5}, 10, 5),
        ("openai", "/completions", {"max_tokens": 10, "prompt": ["a", "b"], "n": 2}, 10, 4),
        ("openai", "/completions", {"max_tokens": 10, "prompt": [17, 18, 19]}, 10, 1),
        ("openai", "/responses", {"max_output_tokens": 30}, 30, 1),
        ("openai", "/responses", {"max_tokens": 1}, None, 1),
        ("openai", "/chat/completions", {}, None, 1),
        ("anthropic", "/v1/messages", {"max_tokens": 10}, 10, 1),
        ("gemini", "", {"generationConfig": {"maxOutputTokens": 10, "candidateCount": 2}}, 10, 2),
        (
            "gemini",
            "",
            {
                "generationConfig": {"maxOutputTokens": 1},
                "generation_config": {"max_output_tokens": 9},
            },
            9,
            1,
        ),
        ("gemini", "", {}, None, 1),
    ],
)
def test_the_most_that_a_call_may_put_out(
    protocol: Protocol, path: str, body: dict[str, Any], bound: int | None, answers: int
) -> None:
    assert DIALECTS[protocol].output_bound(path, body) == bound
    assert DIALECTS[protocol].answers(body) == answers


@pytest.mark.parametrize(
    ("protocol", "body", "adds"),
    [
        ("openai", {"tools": [{"type": "function"}, {"type": "custom"}, 3]}, False),
        ("openai", {"tools": [{"type": "web_search"}]}, True),
        ("openai", {"previous_response_id": "resp_1"}, True),
        ("openai", {"prompt": {"id": "pmpt_1"}}, True),
        ("openai", {"prompt": "once upon a time"}, False),
        ("anthropic", {"tools": [{"name": "mine"}, {"type": "custom"}]}, False),
        ("anthropic", {"tools": [{"type": "web_search_20250305"}]}, True),
        ("anthropic", {"mcp_servers": [{"url": "https://x"}]}, True),
        ("gemini", {"tools": [{"functionDeclarations": []}]}, False),
        ("gemini", {"tools": [{"googleSearch": {}}]}, True),
        ("gemini", {"cachedContent": "cachedContents/1"}, True),
    ],
)
def test_input_that_a_provider_adds_by_itself(
    protocol: Protocol, body: dict[str, Any], adds: bool
) -> None:
    assert DIALECTS[protocol].adds_input(body) is adds


@pytest.mark.parametrize(
    ("protocol", "path", "body"),
    [
        ("openai", "/responses", {"background": True}),
        ("openai", "/batches", {}),
        ("openai", "/threads/t1/runs", {}),
        ("openai", "/fine_tuning/jobs", {}),
        ("anthropic", "/v1/messages/batches", {}),
        ("gemini", "/v1beta/models/g:batchGenerateContent", {}),
    ],
)
def test_work_that_is_done_later_is_known(
    protocol: Protocol, path: str, body: dict[str, Any]
) -> None:
    assert DIALECTS[protocol].is_deferred(path, body)


def test_work_that_is_done_at_once_is_known() -> None:
    assert not OPENAI.is_deferred("/responses", {"background": False})
    assert not ANTHROPIC.is_deferred("/v1/messages", {})
    assert not GEMINI.is_deferred("/v1beta/models/g:batchEmbedContents", {})


@pytest.mark.parametrize("kind", STATUS)
def test_every_refusal_has_a_form_in_every_dialect(kind: Any) -> None:
    refusal = CallRefusal(kind, "no")
    assert OPENAI.wording(refusal)["error"]["message"] == "no"
    assert ANTHROPIC.wording(refusal)["error"]["message"] == "no"
    assert ANTHROPIC.wording(refusal)["type"] == "error"
    assert GEMINI.wording(refusal)["error"]["code"] == refusal.status
