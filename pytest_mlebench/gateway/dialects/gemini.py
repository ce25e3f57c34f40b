"""Google's Gemini API; its OpenAI-compatible form is the other dialect."""

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

_OWN_TOOLS = {"functionDeclarations", "function_declarations"}  # that the agent runs itself
_MODEL = re.compile(r"/((?:models|tunedModels)/[^/:]+)(?::|$)")

# https://cloud.google.com/apis/design/errors
_STATUSES = {
    "bad_request": "INVALID_ARGUMENT",
    "authentication": "UNAUTHENTICATED",
    "permission": "PERMISSION_DENIED",
    "not_found": "NOT_FOUND",
    "too_large": "INVALID_ARGUMENT",
    "budget": "RESOURCE_EXHAUSTED",
    "busy": "RESOURCE_EXHAUSTED",
}


class Gemini(Dialect):
    """Contents, whole, as events, or as one long array."""

    free = re.compile(r"(:countTokens|/files)$")
    deferred = re.compile(
        r"(:batchGenerateContent|:asyncBatchEmbedContent|:predictLongRunning|/batches|/tunedModels)$"
    )

    def models(self, path: str, body: Message) -> Iterator[str]:
        """Yield the model of the path, then that of the body."""
        named = _MODEL.search(path)
        for model in (named and named[1], text(body.get("model"))):
            if model:
                yield model.removeprefix("models/")

    def output_bound(self, path: str, body: Message) -> int | None:
        """Return the larger one, if a bound is spelled in both ways."""
        return most(_config(body), "maxOutputTokens", "max_output_tokens")

    def answers(self, body: Message) -> int:
        """Return the number of candidates."""
        return most(_config(body), "candidateCount", "candidate_count") or 1

    def adds_input(self, body: Message) -> bool:
        """Tell whether cached content or a tool of the provider's own is used."""
        if any(body.get(name) for name in ("cachedContent", "cached_content")):
            return True
        return any(set(tool) - _OWN_TOOLS for tool in tables(body.get("tools")))

    def usage_fields(self, message: Message) -> Message | None:
        """Return ``usageMetadata``, which every event of a stream brings up to date."""
        return table(message, "usageMetadata") or None

    def usage(self, fields: Message) -> Usage | None:
        """Return the usage; the provider counts thoughts apart from the answer."""
        prompt = count(fields.get("promptTokenCount"))
        if prompt is None:
            return None
        thoughts = first_count(fields, "thoughtsTokenCount") or 0
        given = prompt + (first_count(fields, "toolUsePromptTokenCount") or 0)
        return Usage(
            input_tokens=given,
            cached_tokens=min(first_count(fields, "cachedContentTokenCount") or 0, given),
            output_tokens=(first_count(fields, "candidatesTokenCount") or 0) + thoughts,
            reasoning_tokens=thoughts,
        )

    def answered_by(self, message: Message) -> str | None:
        """Return the version of the model."""
        return text(message.get("modelVersion"))

    def wording(self, refusal: CallRefusal) -> dict[str, Any]:
        """Return the error object of Google's APIs."""
        return {
            "error": {
                "code": refusal.status,
                "message": str(refusal),
                "status": _STATUSES[refusal.kind],
            }
        }


def _config(body: Message) -> Message:
    """Return the settings of an answer, both spellings together."""
    return dict(table(body, "generationConfig")) | dict(table(body, "generation_config"))
