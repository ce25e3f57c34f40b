"""Costs: what a group of attempts used of models and machines, and what that is for each medal.

Figures that nobody knows are never taken for zero: attempts without any are counted apart, and
where some of the dollars are not known, those that are known are a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_mlebench.gateway.model_use import ModelUse
from pytest_mlebench.medals import Medal
from pytest_mlebench.reports.results import Result

SECONDS_PER_HOUR = 3600


@dataclass(frozen=True)
class Costs:
    """What some attempts used together."""

    attempts: int = 0  # that ran
    without_figures: int = 0  # of them: neither the gateway nor the agent says anything
    incomplete: int = 0  # of them: have figures, but not all dollars are known
    by_agents: int = 0  # of them: counted by the agents themselves
    exhausted: int = 0  # of them: reached the end of their budgets
    calls: int = 0
    unmetered: int = 0  # of the calls: did not tell their usage
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  # of the input; an agent's own count does not say
    reasoning_tokens: int = 0  # of the output; neither does it say this
    known_usd: float = 0.0
    valid: int = 0  # submissions of the attempts whose dollars are known, at least in part
    medals: int = 0  # of the same attempts
    lost_usd: float | None = 0.0  # in tries that do not count; None: not known
    agent_hours: float = 0.0
    gpu_hours: float = 0.0

    @property
    def has_figures(self) -> bool:
        """Tell whether anything is known about models."""
        return self.attempts > self.without_figures

    @property
    def tokens(self) -> int:
        """Return input and output together."""
        return self.input_tokens + self.output_tokens

    @property
    def is_complete(self) -> bool:
        """Tell whether the dollars of the attempts that have figures are all known."""
        return not self.incomplete

    @property
    def usd(self) -> float | None:
        """Return all dollars that were spent on models; None if some are not known."""
        return None if self.incomplete or self.without_figures else self.known_usd

    @property
    def has_usd(self) -> bool:
        """Tell whether any dollars are known, which are a lower bound if some are not."""
        return self.has_figures and (self.is_complete or self.known_usd > 0)

    @property
    def usd_per_valid(self) -> float | None:
        """Return the known dollars for each valid submission; None without one."""
        return self.known_usd / self.valid if self.valid and self.has_usd else None

    @property
    def usd_per_medal(self) -> float | None:
        """Return the known dollars for each medal; None without one."""
        return self.known_usd / self.medals if self.medals and self.has_usd else None

    @property
    def medals_per_usd(self) -> float | None:
        """Return the medal rate per dollar: medals per attempt by dollars per attempt.

        None if a dollar is not known: a lower bound of the dollars is an upper bound of this.
        """
        if not self.known_usd or not self.is_complete:
            return None
        return self.medals / self.known_usd

    @property
    def unknown(self) -> str | None:
        """Return in words what is not known of the dollars, lost tries included; None if all is."""
        parts = (
            count_attempts(self.without_figures, "without figures"),
            count_attempts(self.incomplete, "with calls of unknown cost"),
            "discarded tries of unknown cost" if self.lost_usd is None else "",
        )
        return ", ".join(filter(None, parts)) or None

    def to_dict(self) -> dict[str, Any]:
        """Return the costs in JSON types; they are computed anew when a report is read."""
        return {
            **vars(self),
            "tokens": self.tokens,
            "usd": self.usd,
            "usd_per_valid": self.usd_per_valid,
            "usd_per_medal": self.usd_per_medal,
            "medals_per_usd": self.medals_per_usd,
        }


def costs_of(results: Iterable[Result]) -> Costs:
    """Return what some results have cost."""
    ran = [result for result in results if result.ran]
    figures = [(result, use) for result in ran if (use := _figures(result)) is not None]
    uses = [use for _, use in figures]
    known = [result for result, use in figures if use.known_usd is not None]
    lost = [result.lost_usd for result in ran]
    return Costs(
        attempts=len(ran),
        without_figures=len(ran) - len(figures),
        incomplete=sum(use.usd is None for use in uses),
        by_agents=sum(use.source == "agent" for use in uses),
        exhausted=sum(bool(use.metered and use.metered.exhausted) for use in uses),
        calls=_total(uses, lambda use: use.calls),
        unmetered=_total(uses, lambda use: use.unmetered),
        input_tokens=_total(uses, lambda use: use.input_tokens),
        output_tokens=_total(uses, lambda use: use.output_tokens),
        cached_tokens=_total(uses, lambda use: use.cached_tokens),
        reasoning_tokens=_total(uses, lambda use: use.reasoning_tokens),
        known_usd=math.fsum(use.known_usd or 0.0 for use in uses),
        valid=sum(result.valid for result in known),
        medals=sum(result.medal > Medal.NONE for result in known),
        lost_usd=None if None in lost else math.fsum(usd or 0.0 for usd in lost),
        agent_hours=math.fsum(map(_hours, ran)),
        gpu_hours=math.fsum(result.gpus * _hours(result) for result in ran),
    )


def costs_by_competition(results: Sequence[Result]) -> dict[str, Costs]:
    """Return the costs of each competition of an agent."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.competition, []).append(result)
    return {name: costs_of(group) for name, group in groups.items()}


def count_attempts(number: int, what: str) -> str:
    """Return ``2 attempts without figures``; nothing for none."""
    return f"{number} {'attempt' if number == 1 else 'attempts'} {what}" if number else ""


def _figures(result: Result) -> ModelUse | None:
    use = result.model_use
    return None if use is None or use.source is None else use


def _total(uses: Iterable[ModelUse], figure: Callable[[ModelUse], int | None]) -> int:
    return sum(figure(use) or 0 for use in uses)


def _hours(result: Result) -> float:
    return (result.agent_seconds or 0.0) / SECONDS_PER_HOUR
