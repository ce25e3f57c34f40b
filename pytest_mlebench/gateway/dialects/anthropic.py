"""Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pytest_mlebench.gateway.dialects.dialect import (
    Dialect,
    Message,
    count,
    first_count,
    table,
    tables,
    text,
)
from pytest_mlebench.gateway.refusal import CallRefusal
from pytest_mlebench.gateway.spending import Usage

# https://docs.anthropic.com/en/api/errors
_TYPES = {
    "bad_request": "invalid_request_error",
    "authentication": "authentication_error",
    "permission": "permission_error",
    "not_found": "not_found_error",
    "too_large": "request_too_large",
    "budget": "rate_limit_error",
    "busy": "rate_limit_error",
}


class Anthropic(Dialect):
    """Messages, whole or as a stream whose first and last events tell the usage."""

    free = re.compile(r"/(count_tokens|files|cancel)$")
    deferred = re.compile(r"/batches(/|$)")

    def models(self, path: str, body: Message) -> Iterator[str]:
        """Yield the model of the body."""
        if model := text(body.get("model")):
            yield model

    def output_bound(self, path: str, body: Message) -> int | None:
        """Return what the protocol requires every message to say."""
        return count(body.get("max_tokens"))

    def adds_input(self, body: Message) -> bool:
        """Tell whether the provider runs tools of its own: their results are input again."""
        if any(body.get(name) for name in ("mcp_servers", "container")):
            return True
        return any(tool.get("type") not in {None, "custom"} for tool in tables(body.get("tools")))

    def usage_fields(self, message: Message) -> Message | None:
        """Return ``usage``, which the first event of a stream has one level down."""
        if message.get("type") == "message_start":
            message = table(message, "message")
        return table(message, "usage") or None

    def usage(self, fields: Message) -> Usage | None:
        """Return the usage; the provider counts cached input apart from the rest."""
        fresh = count(fields.get("input_tokens"))
        if fresh is None:
            return None
        read = first_count(fields, "cache_read_input_tokens") or 0
        written = first_count(fields, "cache_creation_input_tokens") or 0
        output = first_count(fields, "output_tokens") or 0
        thought = first_count(table(fields, "output_tokens_details"), "thinking_tokens") or 0
        return Usage(fresh + read + written, read, written, output, min(thought, output))

    def hour_cache_tokens(self, fields: Message) -> int:
        """Return what was written for an hour rather than for five minutes."""
        return first_count(table(fields, "cache_creation"), "ephemeral_1h_input_tokens") or 0

    def answered_by(self, message: Message) -> str | None:
        """Return the model of a message or of the start of one."""
        return text(message.get("model")) or text(table(message, "message").get("model"))

    def wording(self, refusal: CallRefusal) -> dict[str, Any]:
        """Return the error object of Anthropic's API."""
        return {
            "type": "error",
            "error": {"type": _TYPES[refusal.kind], "message": str(refusal)},
        }
