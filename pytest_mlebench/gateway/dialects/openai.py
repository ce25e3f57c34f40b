"""OpenAI's API and everything that is compatible with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pytest_mlebench.gateway.dialects.dialect import (
    Dialect,
    Message,
    count,
    first_count,
    most,
    table,
    tables,
    text,
)
from pytest_mlebench.gateway.refusal import CallRefusal
from pytest_mlebench.gateway.spending import Usage

_DEPLOYMENT = re.compile(r"/deployments/([^/]+)/")  # Azure: the path decides, not the body
_COMPLETIONS = re.compile(r"/completions$")
_STORED = ("previous_response_id", "conversation", "web_search_options", "plugins")
_OWN_TOOLS = {"function", "custom"}  # that the agent runs itself
_FINAL = {"response.completed", "response.incomplete", "response.failed"}

# https://platform.openai.com/docs/guides/error-codes
_TYPES = {
    "bad_request": ("invalid_request_error", None),
    "authentication": ("invalid_request_error", "invalid_api_key"),
    "permission": ("invalid_request_error", "model_not_found"),
    "not_found": ("invalid_request_error", "not_found"),
    "too_large": ("invalid_request_error", None),
    "budget": ("insufficient_quota", "insufficient_quota"),
    "busy": ("requests", "rate_limit_exceeded"),
}


class OpenAI(Dialect):
    """Chat completions, completions, responses, embeddings, and what else tells its usage."""

    free = re.compile(r"/(moderations|input_tokens|files|cancel)$")
    deferred = re.compile(r"/(batches|fine_tuning|threads|evals)(/|$)")

    def models(self, path: str, body: Message) -> Iterator[str]:
        """Yield the model of the path or the body, then those that a router may fall back on."""
        if deployment := _DEPLOYMENT.search(path):
            yield deployment[1]
        if model := text(body.get("model")):
            yield model
        others = body.get("models")  # OpenRouter's list of fallbacks
        yield from filter(None, map(text, others)) if isinstance(others, list) else ()

    def output_bound(self, path: str, body: Message) -> int | None:
        """Return the bound that calls of a path go by, the larger one of two."""
        if path.endswith("/responses"):
            return count(body.get("max_output_tokens"))
        return most(body, "max_completion_tokens", "max_tokens")

    def answers(self, body: Message) -> int:
        """Return the number of answers, those that are thrown away included."""
        return (most(body, "n", "best_of") or 1) * _prompts(body.get("prompt"))

    def adds_input(self, body: Message) -> bool:
        """Tell whether an earlier response or a tool of the provider's own is used."""
        if any(body.get(name) for name in _STORED) or isinstance(body.get("prompt"), dict):
            return True
        tools = tables(body.get("tools"))
        return any(tool.get("type", "function") not in _OWN_TOOLS for tool in tools)

    def usage_fields(self, message: Message) -> Message | None:
        """Return ``usage``, which the last events of a streamed response have one level down."""
        if message.get("type") in _FINAL:
            message = table(message, "response")
        return table(message, "usage") or None

    def usage(self, fields: Message) -> Usage | None:
        """Return the usage of a completion, a response or an embedding."""
        given = first_count(fields, "prompt_tokens", "input_tokens")
        if given is None:
            return None
        output = first_count(fields, "completion_tokens", "output_tokens") or 0
        # xAI and Gemini leave their reasoning out of the output, but not out of the total
        output = max(output, (count(fields.get("total_tokens")) or 0) - given)
        ins = table(fields, "prompt_tokens_details", "input_tokens_details")
        outs = table(fields, "completion_tokens_details", "output_tokens_details")
        cached = first_count(ins, "cached_tokens") or first_count(fields, "prompt_cache_hit_tokens")
        return Usage(
            input_tokens=given,
            cached_tokens=min(cached or 0, given),
            cache_written_tokens=min(first_count(ins, "cache_write_tokens") or 0, given),
            output_tokens=output,
            reasoning_tokens=min(first_count(outs, "reasoning_tokens") or 0, output),
        )

    def answered_by(self, message: Message) -> str | None:
        """Return the model of a body, a chunk or a streamed response."""
        return text(message.get("model")) or text(table(message, "response").get("model"))

    def wording(self, refusal: CallRefusal) -> dict[str, Any]:
        """Return the error object of OpenAI's API."""
        kind, code = _TYPES[refusal.kind]
        return {"error": {"message": str(refusal), "type": kind, "param": None, "code": code}}

    def is_deferred(self, path: str, body: Message) -> bool:
        """Tell whether a response is made in the background, or the path is one of batches."""
        return body.get("background") is True or super().is_deferred(path, body)

    def can_add_usage(self, path: str, body: Message) -> bool:
        """Tell whether a stream of completions comes without usage."""
        options = table(body, "stream_options")
        asked = options.get("include_usage") is True
        return body.get("stream") is True and not asked and bool(_COMPLETIONS.search(path))


def _prompts(prompt: object) -> int:
    """Return how many prompts the older completions have; numbers are the tokens of one."""
    if isinstance(prompt, list) and not all(isinstance(one, int) for one in prompt):
        return len(prompt)
    return 1
