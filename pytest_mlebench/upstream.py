"""A place that serves models to an agent: what ``[models.NAME]`` in an ``agent.toml`` says."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from pytest_mlebench._references import referenced_names, resolve
from pytest_mlebench.errors import ConfigError

Protocol = Literal["openai", "anthropic", "gemini"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)

TIMEOUT_SECONDS = 600.0  # of silence; the time-out of OpenAI's and Anthropic's own clients
MIN_SECRET_LENGTH = 16  # shorter ones are placeholders such as EMPTY: hiding them garbles texts

_KEY = re.compile(r"[!-~]+")  # what a header may hold, without spaces


@dataclass(frozen=True)
class Variables:
    """The environment variables in which an agent finds the gateway and its key."""

    url: tuple[str, ...]
    key: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return all of them."""
        return self.url + self.key


# What the protocols' own clients read, and LiteLLM's and LangChain's names beside them.
DEFAULT_VARIABLES: Mapping[Protocol, Variables] = {
    "openai": Variables(("OPENAI_BASE_URL", "OPENAI_API_BASE"), ("OPENAI_API_KEY",)),
    "anthropic": Variables(("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"), ("ANTHROPIC_API_KEY",)),
    "gemini": Variables(
        ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"), ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    ),
}

# What those and other providers' clients read a key from.
PROVIDER_KEYS = frozenset(
    (
        *(name for variables in DEFAULT_VARIABLES.values() for name in variables.key),
        *("AZURE_OPENAI_API_KEY", "OPENROUTER_API_KEY", "MISTRAL_API_KEY", "GROQ_API_KEY"),
        *("DEEPSEEK_API_KEY", "XAI_API_KEY", "TOGETHER_API_KEY", "FIREWORKS_API_KEY"),
        *("COHERE_API_KEY", "CEREBRAS_API_KEY", "MOONSHOT_API_KEY", "DASHSCOPE_API_KEY"),
    )
)


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None  # input that was read from a cache; None: as any input
    cache_written: float | None = None  # input that was written to one; None: as any input


@dataclass(frozen=True)
class Upstream:
    """One place that serves models, and what an agent may do there."""

    name: str  # part of the gateway's path
    url: str  # without a slash at its end
    protocol: Protocol = "openai"  # of its HTTP interface
    key: str = ""  # may refer to ${VAR}; stays outside the sandbox
    allow: tuple[str, ...] = ("*",)  # patterns of models
    variables: Variables | None = None  # None: those of the protocol's own clients
    prices: Mapping[str, Price] = field(default_factory=dict)  # by pattern, the first match wins
    timeout_seconds: float = TIMEOUT_SECONDS  # of one call

    @property
    def environment(self) -> Variables:
        """Return the variables in which the agent finds this upstream."""
        return self.variables or DEFAULT_VARIABLES[self.protocol]

    @property
    def is_restricted(self) -> bool:
        """Tell whether some models are not allowed."""
        return "*" not in self.allow

    def allows(self, model: str) -> bool:
        """Tell whether an agent may call a model."""
        return any(fnmatchcase(model, pattern) for pattern in self.allow)

    def price(self, model: str) -> Price | None:
        """Return the price of a model, if it is written down."""
        return next(
            (price for pattern, price in self.prices.items() if fnmatchcase(model, pattern)), None
        )

    def describe(self) -> str:
        """Return where the models are and which of them are allowed, for a reader."""
        host = urlsplit(self.url).netloc.rpartition("@")[2]
        models = f" ({', '.join(self.allow)})" if self.is_restricted else ""
        return f"{self.name} at {host}{models}"

    def to_dict(self) -> dict[str, Any]:
        """Return all that is said of it, in JSON types; of the key, only the reference."""
        return asdict(self)

    def real_key(self, agent: str, host: Mapping[str, str] | None = None) -> str:
        """Return the key with every ``${VAR}`` replaced by the host's value."""
        values = os.environ if host is None else host
        key = resolve(self.key, values, agent=agent, setting=f"models.{self.name} has key").strip()
        if self.key and not _KEY.fullmatch(key):
            raise ConfigError(
                f"agent {agent!r}: the key of models.{self.name} ({self.key}) is empty or has "
                "characters that no key has: check what is exported"
            )
        return key

    def references(self) -> tuple[str, ...]:
        """Return the names of the host's variables that hold the key."""
        return referenced_names(self.key)
