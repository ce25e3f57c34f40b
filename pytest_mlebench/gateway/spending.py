"""What an attempt spent on models: the figures of the gateway as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import reduce
from operator import add
from typing import Any

from pytest_mlebench.budget import Budget
from pytest_mlebench.gateway.figures import amount, tally, whole

USD_DIGITS = 12  # after the point: a millionth of what a token costs


@dataclass(frozen=True)
class Usage:
    """Tokens, as one or many calls used them."""

    input_tokens: int = 0  # all of them, cached ones included
    cached_tokens: int = 0  # of the input: read from a cache
    cache_written_tokens: int = 0  # of the input: written to one
    output_tokens: int = 0  # all of them, reasoning included
    reasoning_tokens: int = 0  # of the output

    @property
    def total_tokens(self) -> int:
        """Return input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def to_dict(self) -> dict[str, int]:
        """Return plain data for a record."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, int]) -> Usage:
        """Return the usage that ``to_dict`` wrote; anything else is a ValueError or KeyError."""
        return cls(*(whole(data[each.name], each.name) for each in fields(cls)))


@dataclass(frozen=True)
class ModelSpending:
    """What was spent on one model of one upstream."""

    upstream: str
    model: str  # as the agent asked for it; "" for calls that name none
    calls: int = 0  # that were passed on
    errors: int = 0  # of them: answered by an error, or broken off
    unmetered: int = 0  # of them: may have cost something, but nobody said what
    seconds: float = 0.0  # from a call's arrival to its end, summed up
    usage: Usage = field(default_factory=Usage)
    usd: float | None = 0.0  # None: its price is not known

    @property
    def is_complete(self) -> bool:
        """Tell whether the dollars are all there is."""
        return self.usd is not None and not self.unmetered

    def __add__(self, other: ModelSpending) -> ModelSpending:
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return ModelSpending(
            upstream=self.upstream,
            model=self.model,
            calls=self.calls + other.calls,
            errors=self.errors + other.errors,
            unmetered=self.unmetered + other.unmetered,
            seconds=round(self.seconds + other.seconds, 4),
            usage=self.usage + other.usage,
            usd=None if usd is None else round(usd, USD_DIGITS),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for a record."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ModelSpending:
        """Return what ``to_dict`` wrote; anything else is a ValueError or KeyError."""
        usd = data["usd"]  # null is a price that nobody knows, and absent is damaged
        return cls(
            upstream=str(data["upstream"]),
            model=str(data["model"]),
            calls=whole(data["calls"], "calls"),
            errors=whole(data["errors"], "errors"),
            unmetered=whole(data["unmetered"], "unmetered"),
            seconds=amount(data["seconds"], "seconds"),
            usage=Usage.from_dict(data["usage"]),
            usd=None if usd is None else amount(usd, "usd"),
        )


@dataclass(frozen=True)
class Spending:
    """What an attempt spent, by model; what it was not allowed; what went wrong on the way."""

    models: tuple[ModelSpending, ...] = ()
    budget: Budget = field(default_factory=Budget)
    exhausted: tuple[str, ...] = ()  # the bounds that were reached: usd, tokens, calls, session_usd
    refused: Mapping[str, int] = field(default_factory=dict)  # why -> calls not passed on
    problems: Mapping[str, int] = field(default_factory=dict)  # of upstreams, with their number
    transcripts_dropped: int = 0  # calls whose contents were to be kept and did not fit

    @property
    def calls(self) -> int:
        """Return how many calls were passed on."""
        return sum(one.calls for one in self.models)

    @property
    def errors(self) -> int:
        """Return how many of them failed."""
        return sum(one.errors for one in self.models)

    @property
    def unmetered(self) -> int:
        """Return how many of them may have cost something that nobody knows."""
        return sum(one.unmetered for one in self.models)

    @property
    def seconds(self) -> float:
        """Return for how long models were at work, parallel calls summed up."""
        return sum(one.seconds for one in self.models)

    @property
    def usage(self) -> Usage:
        """Return the tokens of all models."""
        return reduce(add, (one.usage for one in self.models), Usage())

    @property
    def known_usd(self) -> float:
        """Return the dollars of the models whose price is known: at least so much was spent."""
        known = (one.usd for one in self.models if one.usd is not None)
        return round(sum(known), USD_DIGITS)

    @property
    def usd(self) -> float | None:
        """Return the dollars; None if the price of a model that was used is not known."""
        return None if any(one.usd is None for one in self.models) else self.known_usd

    @property
    def is_complete(self) -> bool:
        """Tell whether the dollars are all there is."""
        return all(one.is_complete for one in self.models)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for a record; the sums are there for readers and not read back."""
        return {
            "usd": self.usd,
            "known_usd": self.known_usd,
            "usage": self.usage.to_dict(),
            "calls": self.calls,
            "errors": self.errors,
            "unmetered": self.unmetered,
            "seconds": self.seconds,
            "models": [one.to_dict() for one in self.models],
            "budget": self.budget.to_dict(),
            "exhausted": list(self.exhausted),
            "refused": dict(self.refused),
            "problems": dict(self.problems),
            "transcripts_dropped": self.transcripts_dropped,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Spending:
        """Return the spending that ``to_dict`` wrote."""
        return cls(
            models=tuple(map(ModelSpending.from_dict, data["models"])),
            budget=Budget.from_dict(data["budget"]),
            exhausted=tuple(map(str, data["exhausted"])),
            refused=tally(data["refused"], "refused"),
            problems=tally(data["problems"], "problems"),
            transcripts_dropped=whole(data["transcripts_dropped"], "transcripts_dropped"),
        )


def total(spendings: Iterable[Spending]) -> Spending:
    """Return what several attempts spent together, by model; budgets are per attempt and drop."""
    models: dict[tuple[str, str], ModelSpending] = {}
    refused: dict[str, int] = {}
    problems: dict[str, int] = {}
    dropped = 0
    for spending in spendings:
        dropped += spending.transcripts_dropped
        for one in spending.models:
            key = (one.upstream, one.model)
            models[key] = models[key] + one if key in models else one
        for ours, theirs in ((refused, spending.refused), (problems, spending.problems)):
            for name, count in theirs.items():
                ours[name] = ours.get(name, 0) + count
    return Spending(
        models=tuple(models.values()),
        refused=refused,
        problems=problems,
        transcripts_dropped=dropped,
    )
