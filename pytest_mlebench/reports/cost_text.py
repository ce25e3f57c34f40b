"""Costs for readers: lines of a summary, and notes about single attempts."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_mlebench._units import show_tokens, show_usd
from pytest_mlebench.reports.costs import Costs, count_attempts
from pytest_mlebench.reports.results import Result

SHORTEST_HOURS = 0.01  # that are shown as a number


def cost_lines(costs: Costs, gpu_hour_usd: float | None = None) -> list[str]:
    """Return the lines of a summary that are about costs; none where there is nothing to say."""
    lines = (costs_line(costs), hours_line(costs, gpu_hour_usd))
    return [line for line in lines if line is not None]


def costs_line(costs: Costs) -> str | None:
    """Return ``models: 31.2 M tokens, $214.10, $4.87 per medal (2 attempts without figures)``.

    None if nothing is known of models, which is no news of an agent without any.
    """
    if not costs.has_figures:
        return None
    parts = [show_tokens(costs.tokens), shown_usd(costs)]
    least = "" if costs.is_complete else "at least "
    if costs.usd_per_medal is not None:
        parts.append(f"{least}{show_usd(costs.usd_per_medal)} per medal")
    elif costs.usd_per_valid is not None:
        parts.append(f"{least}{show_usd(costs.usd_per_valid)} per valid submission")
    notes = (
        count_attempts(costs.without_figures, "without figures"),
        count_attempts(costs.by_agents, "by the agent's own count"),
        count_attempts(costs.exhausted, "out of budget"),
        f"{show_usd(costs.lost_usd)} more in discarded tries" if costs.lost_usd else "",
    )
    more = ", ".join(filter(None, notes))
    return f"models: {', '.join(parts)}" + (f" ({more})" if more else "")


def hours_line(costs: Costs, gpu_hour_usd: float | None) -> str | None:
    """Return ``machines: 12.0 agent-hours, 12.0 GPU-hours, $30.00``.

    None where neither a GPU nor a model was used: hours alone are in the disclosure.
    """
    if not costs.gpu_hours and not costs.has_figures:
        return None
    parts = [f"{_hours(costs.agent_hours)} agent-hours"]
    if costs.gpu_hours:
        parts.append(f"{_hours(costs.gpu_hours)} GPU-hours")
        if gpu_hour_usd is not None:
            parts.append(show_usd(gpu_hour_usd * costs.gpu_hours))
    return f"machines: {', '.join(parts)}"


def shown_usd(costs: Costs) -> str:
    """Return the dollars for a reader; what nobody knows is never zero."""
    if not costs.has_usd:
        return "cost unknown"
    return f"{'' if costs.is_complete else 'at least '}{show_usd(costs.known_usd)}"


def cost_notes(results: Iterable[Result]) -> list[str]:
    """Return what a reader of the figures must know of single attempts, a sentence each."""
    return [
        f"{result.competition} seed {result.seed}: {note}"
        for result in results
        if result.model_use is not None
        for note in result.model_use.notes
    ]


def _hours(hours: float) -> str:
    if hours >= 1:
        return f"{hours:.1f}"
    return f"{hours:.2f}" if hours >= SHORTEST_HOURS else f"less than {SHORTEST_HOURS}"
