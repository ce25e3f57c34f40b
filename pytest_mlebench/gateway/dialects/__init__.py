"""What the gateway must know of each protocol, and nothing more.

A dialect reads models, bounds and usage out of messages and words refusals as the provider would.
Everything else passes through unread.
"""

from __future__ import annotations

from pytest_mlebench.gateway.dialects.anthropic import Anthropic
from pytest_mlebench.gateway.dialects.dialect import Dialect
from pytest_mlebench.gateway.dialects.gemini import Gemini
from pytest_mlebench.gateway.dialects.openai import OpenAI
from pytest_mlebench.upstream import Protocol

DIALECTS: dict[Protocol, Dialect] = {
    "openai": OpenAI(),
    "anthropic": Anthropic(),
    "gemini": Gemini(),
}
