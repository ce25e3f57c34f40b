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
    table,
    text,
)
from pytest_mlebench.gateway.refusal import CallRefusal
from pytest_mlebench.gateway.spending import Usage

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

    def output_bound(self, body: Message) -> int | None:
        """Return the bound of an answer times the number of answers."""
        config = table(body, "generationConfig", "generation_config")
        bound = first_count(config, "maxOutputTokens", "max_output_tokens")
        number = first_count(config, "candidateCount", "candidate_count") or 1
        return None if bound is None else bound * number

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
