"""What a call asks for: read strictly, so that an upstream cannot read it in another way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_mlebench.budget import Budget
from pytest_mlebench.gateway.calls import MAX_NAME_LENGTH
from pytest_mlebench.gateway.dialects import DIALECTS
from pytest_mlebench.gateway.dialects.dialect import Dialect, Message
from pytest_mlebench.gateway.form_body import KIND, form_fields
from pytest_mlebench.gateway.prices import Prices
from pytest_mlebench.gateway.refusal import CallRefusal
from pytest_mlebench.gateway.routes import Route

METHODS = frozenset({"GET", "HEAD", "OPTIONS", "DELETE", "POST", "PUT", "PATCH"})
RUNS_NOTHING = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})  # no model, whatever the path

_SPACE = b" \t\r\n"
_ASK = b'"stream_options":{"include_usage":true},'


@dataclass(frozen=True)
class ModelRequest:
    """A call's body, and what matters in it."""

    route: Route
    method: str
    body: bytes
    message: Message  # empty if the body is not an object of JSON
    models: tuple[str, ...]  # that may run, the one asked for first
    asks_for_usage: bool = False  # on our own behalf

    @property
    def dialect(self) -> Dialect:
        """Return the protocol's."""
        return DIALECTS[self.route.upstream.protocol]

    @property
    def model(self) -> str:
        """Return the model that is asked for, or nothing."""
        return self.models[0] if self.models else ""

    @property
    def is_stream(self) -> bool:
        """Tell whether the answer is wanted as a stream."""
        return self.message.get("stream") is True or ":stream" in self.route.decoded

    @property
    def is_embedding(self) -> bool:
        """Tell whether numbers are wanted, which are no output in tokens."""
        return self.route.decoded.endswith("/embeddings")

    @property
    def may_cost(self) -> bool:
        """Tell whether an answer without usage leaves a cost unknown."""
        return self.method not in RUNS_NOTHING and not self.dialect.is_free(self.route.decoded)

    def with_usage_asked_for(self) -> ModelRequest:
        """Return the call as it tells its usage, if it would not do so by itself."""
        if not self.dialect.can_add_usage(self.route.decoded, self.message):
            return self
        return replace(self, body=_ask_for_usage(self.body, self.message), asks_for_usage=True)


def read_model_request(route: Route, method: str, content_type: str, body: bytes) -> ModelRequest:
    """Return what a call asks for, or refuse one that can be read in two ways."""
    start = body.lstrip(_SPACE)
    is_json = bool(start) and ("json" in content_type.lower() or start.startswith(b"{"))
    is_form = bool(body) and content_type.lower().lstrip().startswith(KIND)
    message: Message = {}
    if is_json:
        message = _parse(body)
    elif is_form and method not in RUNS_NOTHING:
        message = form_fields(content_type, body)
    dialect = DIALECTS[route.upstream.protocol]
    models = tuple(dict.fromkeys(dialect.models(route.decoded, message)))
    if any(len(model) > MAX_NAME_LENGTH for model in models):
        raise CallRefusal("bad_request", "the name of the model is too long")
    return ModelRequest(route, method, body, message, models)


def require_allowed(model_request: ModelRequest, budget: Budget, prices: Prices) -> None:
    """Refuse a model that is not allowed, and work that a budget could not be held against."""
    if not model_request.may_cost:
        return
    upstream = model_request.route.upstream
    where = f"models.{upstream.name}"
    if upstream.is_restricted:
        patterns = ", ".join(upstream.allow)
        if not model_request.models:
            raise CallRefusal(
                "permission", f"the call names no model, and {where} allows only {patterns}"
            )
        for model in model_request.models:
            if not upstream.allows(model):
                raise CallRefusal(
                    "permission", f"the model {model!r} is not allowed: {where} allows {patterns}"
                )
    if budget.needs_usage and model_request.dialect.is_deferred(
        model_request.route.decoded, model_request.message
    ):
        raise CallRefusal(
            "permission",
            "work that is done later never shows its usage here, so that the budget "
            f"({budget.describe()}) could not be held: ask for an answer at once",
        )
    if budget.needs_prices:
        _require_prices(model_request.models, where, prices)


def _require_prices(models: Sequence[str], where: str, prices: Prices) -> None:
    for model in models:
        if not prices.is_known(model):
            raise CallRefusal(
                "permission",
                f"the price of the model {model!r} is not known, so that a budget in dollars "
                f'cannot be held: give it in [{where}.prices."{model}"] of the agent\'s file',
            )


def _parse(body: bytes) -> Message:
    try:
        content = json.loads(body.decode("utf-8"), object_pairs_hook=_table)
    except (ValueError, RecursionError) as problem:
        reason = str(problem) if isinstance(problem, _RepeatedKey) else "it is not valid JSON"
        raise CallRefusal("bad_request", f"the body is not understood: {reason}") from None
    return content if isinstance(content, dict) else {}


class _RepeatedKey(ValueError):
    """Name a key that is there twice: we might go by one, and the upstream by the other."""


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise _RepeatedKey(f"it has the key {repeated[:50]!r} twice")
    return table


def _ask_for_usage(body: bytes, message: Message) -> bytes:
    options = message.get("stream_options")
    if options is None and "stream_options" not in message:
        start = body.index(b"{") + 1
        return body[:start] + _ASK + body[start:]  # the rest stays as it was written
    asked = dict(options) if isinstance(options, dict) else {}
    changed = dict(message) | {"stream_options": asked | {"include_usage": True}}
    return json.dumps(changed, ensure_ascii=False).encode(errors="surrogatepass")
