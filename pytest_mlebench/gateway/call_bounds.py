"""The most that a call may use, worked out before it is made.

A budget is held as exactly as these bounds are true, so each is a bound and no guess: a token has
at least one byte, what a call refers to may fill the model's context, and an answer that is not
bounded may be as long as models can make one.
"""

from __future__ import annotations

from decimal import Decimal

from pytest_mlebench.budget import Budget
from pytest_mlebench.gateway.dialects.dialect import Message
from pytest_mlebench.gateway.ledger import Hold
from pytest_mlebench.gateway.model_request import ModelRequest
from pytest_mlebench.gateway.prices import Prices

HIDDEN_TOKENS = 2_000  # that a provider adds to what it is sent, with tools for instance
MAX_CONTEXT_TOKENS = 2_000_000  # so many fit into a model, however many bytes a picture has
MAX_OUTPUT_TOKENS = 131_072  # of one answer, if neither the call nor an earlier one says more

# Keys of what is not in the body: files and pages, by the names of all three protocols.
_REFERENCES = frozenset({"file_id", "file_url", "file_uri", "fileUri", "image_url"})
_IN_PLACE = "data:"  # a URL that is its own content (RFC 2397)


def hold_for(
    model_request: ModelRequest, budget: Budget, prices: Prices, largest_output: int
) -> Hold:
    """Return the most that a call may use."""
    if not budget.needs_usage or not model_request.may_cost:
        return Hold()
    given = _input_bound(model_request)
    output = _output_bound(model_request, largest_output)
    usd = Decimal(0)
    if budget.needs_prices:
        costs = (prices.bound(model, given, output) for model in model_request.models)
        usd = max(costs, default=usd)
    return Hold(tokens=given + output, usd=usd)


def _input_bound(model_request: ModelRequest) -> int:
    message = model_request.message
    if model_request.dialect.adds_input(message) or _has_reference(message):
        return MAX_CONTEXT_TOKENS
    return min(len(model_request.body) + HIDDEN_TOKENS, MAX_CONTEXT_TOKENS)


def _output_bound(model_request: ModelRequest, largest_output: int) -> int:
    if model_request.is_embedding:
        return 0
    dialect, message = model_request.dialect, model_request.message
    bound = dialect.output_bound(model_request.route.decoded, message)
    if bound is None:
        bound = max(largest_output, MAX_OUTPUT_TOKENS)
    return bound * dialect.answers(message)


def _has_reference(message: Message) -> bool:
    """Tell whether anything in a body stands for something that is not in it."""
    waiting: list[object] = [message]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if any(_is_elsewhere(value[name]) for name in _REFERENCES & value.keys()):
                return True
            if value.get("type") == "url":  # a source, in Anthropic's words
                return True
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return False


def _is_elsewhere(value: object) -> bool:
    if isinstance(value, dict):
        value = value.get("url")
    return isinstance(value, str) and not value.startswith(_IN_PLACE)
