"""What is known of an attempt's use of models: counted by the gateway, or by the agent's own word.

Where both exist the gateway's figures count, and ``difference`` says how far the agent's are off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pytest_mlebench.gateway.own_usage import BadUsage, OwnUsage, difference, read_own_usage
from pytest_mlebench.gateway.spending import ModelSpending, Spending

SHOWN_MODELS = 3  # of those without a price, where people see them
LISTED_MODELS = 20  # of an attempt, in a cell

Source = Literal["gateway", "agent"]


@dataclass(frozen=True)
class ModelUse:
    """Tokens and dollars of one attempt, and who says so."""

    metered: Spending | None = None  # by the gateway; None: the agent had none
    reported: OwnUsage | None = None  # by the agent itself
    problem: str | None = None  # why what the agent reports cannot be used
    interrupted: bool = False  # nobody counted the calls that were under way at the end

    @property
    def source(self) -> Source | None:
        """Return whose figures count; None if there are none."""
        if self.metered is not None:
            return "gateway"
        own = self.reported
        said = own is not None and (own.tokens is not None or own.usd is not None)
        return "agent" if said else None

    @property
    def input_tokens(self) -> int | None:
        """Return the tokens of the input, those from a cache included."""
        if self.metered is not None:
            return self.metered.usage.input_tokens
        return None if self.reported is None else self.reported.input_tokens

    @property
    def output_tokens(self) -> int | None:
        """Return the tokens of the output, those of reasoning included."""
        if self.metered is not None:
            return self.metered.usage.output_tokens
        return None if self.reported is None else self.reported.output_tokens

    @property
    def tokens(self) -> int | None:
        """Return input and output together."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens

    @property
    def cached_tokens(self) -> int | None:
        """Return the tokens of the input that came from a cache; an agent does not say."""
        return None if self.metered is None else self.metered.usage.cached_tokens

    @property
    def reasoning_tokens(self) -> int | None:
        """Return the tokens of the output that were reasoning; an agent does not say."""
        return None if self.metered is None else self.metered.usage.reasoning_tokens

    @property
    def by_model(self) -> str:
        """Return tokens and dollars of each model on one line, for tables of attempts."""
        spent = () if self.metered is None else self.metered.models[:LISTED_MODELS]
        return "; ".join(map(_describe, spent))

    @property
    def calls(self) -> int | None:
        """Return how many calls were made; an agent does not say."""
        return None if self.metered is None else self.metered.calls

    @property
    def unmetered(self) -> int:
        """Return how many calls may have cost something that nobody knows."""
        return 0 if self.metered is None else self.metered.unmetered

    @property
    def known_usd(self) -> float | None:
        """Return the dollars that are known: at least so much was spent; None if none are."""
        if self.metered is not None:
            return self.metered.known_usd
        return None if self.reported is None else self.reported.usd

    @property
    def usd(self) -> float | None:
        """Return all dollars that were spent; None if some of them are not known."""
        if self.interrupted or (self.metered is not None and not self.metered.is_complete):
            return None
        return self.known_usd

    @property
    def difference(self) -> str | None:
        """Return in words how the agent's own figures differ from those that count."""
        if self.metered is None or self.reported is None:
            return None
        return difference(self.metered, self.reported)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return a sentence for everything that a reader of the figures must know."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        if (spent := self.metered) is not None:
            if spent.exhausted:
                yield f"the budget was exhausted ({', '.join(spent.exhausted)})"
            unpriced = [one.model or "no model" for one in spent.models if one.usd is None]
            if unpriced:
                more = ", …" if len(unpriced) > SHOWN_MODELS else ""
                yield f"nobody knows the price of {', '.join(unpriced[:SHOWN_MODELS])}{more}"
            if spent.unmetered:
                yield f"{spent.unmetered} of {spent.calls} calls did not tell their usage"
            if spent.transcripts_dropped:
                yield f"the transcripts of {spent.transcripts_dropped} calls did not fit"
        if self.interrupted:
            yield "the attempt was cut off: calls that were under way then are not counted"
        yield from (each for each in (self.difference, self.problem) if each is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; what follows from the two sources is there for readers."""
        return {
            "source": self.source,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "tokens": self.tokens,
            "usd": self.usd,
            "known_usd": self.known_usd,
            "notes": list(self.notes),
            "metered": None if self.metered is None else self.metered.to_dict(),
            "reported": None if self.reported is None else self.reported.to_dict(),
            "problem": self.problem,
            "interrupted": self.interrupted,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ModelUse:
        """Return what ``to_dict`` wrote; anything else is a ValueError that says what is wrong."""
        try:
            metered, reported, problem = data["metered"], data["reported"], data["problem"]
            return cls(
                metered=None if metered is None else Spending.from_dict(metered),
                reported=None if reported is None else OwnUsage.from_dict(reported),
                problem=None if problem is None else str(problem),
                interrupted=data.get("interrupted") is True,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"is damaged: {type(error).__name__}: {error}") from None


def model_use(metered: Spending | None, logs: Path) -> ModelUse | None:
    """Return what the gateway counted and the agent left among its logs; None if neither did."""
    try:
        use = ModelUse(metered, read_own_usage(logs))
    except BadUsage as problem:
        use = ModelUse(metered, problem=str(problem))
    return None if use == ModelUse() else use


def _describe(one: ModelSpending) -> str:
    usd = "cost unknown" if one.usd is None else f"{one.usd:.6g} usd"
    return f"{one.upstream}: {one.model or 'no model'}: {one.usage.total_tokens} tokens, {usd}"
