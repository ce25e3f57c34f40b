"""Costs for readers: lines of a summary, and the cells of tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pytest_mlebench._units import show_tokens, show_usd
from pytest_mlebench.reports.costs import Costs, costs_by_competition, count_attempts
from pytest_mlebench.reports.results import Result, named

if TYPE_CHECKING:
    from pytest_mlebench.reports.report import Report

HEAD = (
    "",
    "attempts",
    "tokens",
    "calls",
    "cost",
    "per valid submission",
    "per medal",
    "medals per dollar",
    "agent hours",
    "GPU hours",
)


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
    """Return ``machines: 12.0 agent-hours, 12.0 GPU-hours, $30.00``; None without a GPU."""
    if not costs.gpu_hours:
        return None
    parts = [f"{costs.agent_hours:.1f} agent-hours", f"{costs.gpu_hours:.1f} GPU-hours"]
    if gpu_hour_usd is not None:
        parts.append(show_usd(gpu_hour_usd * costs.gpu_hours))
    return f"machines: {', '.join(parts)}"


def shown_usd(costs: Costs) -> str:
    """Return the dollars for a reader; what nobody knows is never zero."""
    if not costs.has_usd:
        return "cost unknown"
    return f"{'' if costs.is_complete else 'at least '}{show_usd(costs.known_usd)}"


def cost_rows(report: Report) -> list[list[str]]:
    """Return the cells below ``HEAD``: every split, then every competition."""
    several = len(report.blocks) > 1
    rows = [[named(row, row.name, several=several), *_cells(row.costs)] for row in report.rates]
    for block in report.blocks:
        for name, costs in costs_by_competition(block).items():
            rows.append([named(block[0], name, several=several), *_cells(costs)])
    return rows


def cost_notes(results: Iterable[Result]) -> list[str]:
    """Return what a reader of the figures must know of single attempts, a sentence each."""
    return [
        f"{result.competition} seed {result.seed}: {note}"
        for result in results
        if result.model_use is not None
        for note in result.model_use.notes
    ]


def _cells(costs: Costs) -> Iterator[str]:
    some = costs.has_figures
    least = "" if costs.is_complete else "at least "
    yield f"{costs.attempts - costs.without_figures} of {costs.attempts} with figures"
    yield show_tokens(costs.tokens) if some else ""
    yield str(costs.calls) if some else ""
    yield shown_usd(costs) if some else ""
    for usd in (costs.usd_per_valid, costs.usd_per_medal):
        yield "" if usd is None else f"{least}{show_usd(usd)}"
    yield "" if costs.medals_per_usd is None else f"{costs.medals_per_usd:.4g}"
    yield f"{costs.agent_hours:.2f}"
    yield f"{costs.gpu_hours:.2f}"
