"""A gate on what models cost: the session fails above it, and where nobody knows what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_mlebench._units import show_usd
from pytest_mlebench.budget import Budget, parse_budget
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.reports.costs import costs_of
from pytest_mlebench.reports.results import Result

OPTION = "--mle-fail-over"


@dataclass(frozen=True)
class SpendingGate:
    """The most dollars that all attempts of a report may have spent together."""

    usd: float
    given: str  # the option with its value as the user wrote it

    @property
    def value(self) -> str:
        """Return the value of the option."""
        return f"{self.usd:.12g}usd"

    def judge(self, results: Sequence[Result]) -> str | None:
        """Return a sentence if more was spent, or if nobody knows how much was, else None."""
        costs = costs_of(results)
        spent = costs.known_usd + (costs.lost_usd or 0.0)
        bar = f"the bar of {show_usd(self.usd)}"
        if spent > self.usd:
            least = "" if costs.unknown is None else "at least "
            return f"the models cost {least}{show_usd(spent)}, over {bar} ({self.given})"
        if costs.unknown is not None:
            return (
                f"what the models cost cannot be judged by {bar}: {show_usd(spent)} are known, "
                f"and there are {costs.unknown} ({self.given})"
            )
        return None


def parse_fail_over(value: str | None, option: str = OPTION) -> SpendingGate | None:
    """Return the gate in ``250usd``; None without a value."""
    if value is None:
        return None
    bounds = parse_budget(value, option)
    if bounds.usd is None or bounds != Budget(usd=bounds.usd):
        raise ConfigError(f"{option} must be dollars such as 250usd, given: {value}")
    return SpendingGate(bounds.usd, f"{option}={value}")
