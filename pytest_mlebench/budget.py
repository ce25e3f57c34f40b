"""What an attempt may spend on models, as data; and how people write it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_mlebench.errors import ConfigError

_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(usd|calls?|([kMG]?)tok(?:ens?)?)", re.IGNORECASE)
_POWERS = {"": 0, "k": 3, "m": 6, "g": 9}
_EXAMPLES = "20usd, 5Mtok, 2000calls or several with commas"


@dataclass(frozen=True)
class Budget:
    """Bounds of one attempt, and of all attempts of a run together; None is no bound."""

    usd: float | None = None  # dollars
    tokens: int | None = None  # of the input and the output together
    calls: int | None = None  # of models
    session_usd: float | None = None  # of the whole run, over all workers

    def __bool__(self) -> bool:
        return any(value is not None for value in vars(self).values())

    @property
    def needs_prices(self) -> bool:
        """Tell whether a model whose price nobody knows would make a bound meaningless."""
        return self.usd is not None or self.session_usd is not None

    @property
    def needs_usage(self) -> bool:
        """Tell whether a call that never shows its usage would make a bound meaningless."""
        return self.needs_prices or self.tokens is not None

    def overridden_by(self, other: Budget) -> Budget:
        """Return this budget with every bound that *other* sets."""
        changes: dict[str, Any] = {k: v for k, v in vars(other).items() if v is not None}
        return replace(self, **changes)

    def describe(self) -> str:
        """Return the bounds as people write them, or ``unlimited``."""
        parts = (
            None if self.usd is None else f"{self.usd:.12g}usd",
            None if self.tokens is None else _show_tokens(self.tokens),
            None if self.calls is None else f"{self.calls}calls",
            None if self.session_usd is None else f"{self.session_usd:.12g}usd per run",
        )
        return ", ".join(part for part in parts if part is not None) or "unlimited"

    def to_dict(self) -> dict[str, Any]:
        """Return the bounds that are set, for a record."""
        return {key: value for key, value in vars(self).items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Budget:
        """Return the budget that ``to_dict`` wrote; anything else is a ValueError or TypeError."""
        for key, value in data.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                raise ValueError(f"budget: {key} must be a positive number, given: {value!r}")
        return cls(**data)


def parse_budget(value: str, option: str = "--mle-budget") -> Budget:
    """Return the budget in ``20usd``, ``5Mtok``, ``2000calls`` or several of them with commas."""
    found: dict[str, Any] = {}
    for text in value.split(","):
        match = _PART.fullmatch(text.strip())
        if match is None:
            raise ConfigError(f"{option} must be {_EXAMPLES}, given: {value}")
        key, amount = _amount(match)
        if key in found:
            raise ConfigError(f"{option} sets {key} twice, given: {value}")
        if amount <= 0 or (key != "usd" and amount != int(amount)):
            raise ConfigError(f"{option} must be a positive amount, given: {value}")
        found[key] = amount if key == "usd" else int(amount)
    return Budget(**found)


def _amount(match: re.Match[str]) -> tuple[str, float]:
    number, unit, power = match[1], match[2].lower(), match[3]
    if unit == "usd":
        return "usd", float(number)
    if unit.startswith("call"):
        return "calls", float(number)
    return "tokens", round(float(number) * 10 ** _POWERS[power.lower()], 6)


def _show_tokens(tokens: int) -> str:
    for size, unit in ((10**9, "Gtok"), (10**6, "Mtok"), (10**3, "ktok")):
        if tokens >= size and tokens * 1000 % size == 0:
            return f"{tokens / size:.12g}{unit}"
    return f"{tokens}tok"
