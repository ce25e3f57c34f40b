"""Costs as tables for readers: by split and competition, by model, by attempt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_mlebench._plain_text import one_line
from pytest_mlebench._units import show_tokens, show_usd
from pytest_mlebench.gateway.spending import ModelSpending, total
from pytest_mlebench.reports.cost_text import shown_usd
from pytest_mlebench.reports.costs import Costs, costs_by_competition, costs_of
from pytest_mlebench.reports.results import Result, named

if TYPE_CHECKING:
    from pytest_mlebench.reports.report import Report

SHOWN_MODELS = 50  # an agent may invent names without end

_TOKENS = ("tokens", "of them cached", "of them reasoning", "calls", "cost")
_HOURS = ("agent hours", "GPU hours", "GPU cost")
_SHARES = ("per valid submission", "per medal", "medals per dollar")
_OF_MODELS = ("model", "calls", "errors", "input", "cached", "output", "reasoning", "hours", "cost")


@dataclass(frozen=True)
class CostTable:
    """A table: its title, its head, its cells."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def group_table(report: Report) -> CostTable:
    """Return the costs of every split, then of every competition."""
    several, price = len(report.blocks) > 1, report.disclosure.gpu_hour_usd
    groups = [(named(row, row.name, several=several), row.costs) for row in report.rates]
    for block in report.blocks:
        for name, costs in costs_by_competition(block).items():
            groups.append((named(block[0], name, several=several), costs))
    rows = (
        (
            name,
            f"{costs.attempts - costs.without_figures} of {costs.attempts} with figures",
            *_tokens(costs),
            *_shares(costs),
            *_hours(costs, price),
        )
        for name, costs in groups
    )
    head = ("", "attempts", *_TOKENS, *_SHARES, *_HOURS)
    return CostTable("By split and competition", head, tuple(rows))


def attempt_table(report: Report) -> CostTable:
    """Return the costs of every attempt that ran."""
    several, price = len(report.blocks) > 1, report.disclosure.gpu_hour_usd
    rows = []
    for result in report.results:
        if result.ran:
            name = f"{named(result, result.competition, several=several)} seed {result.seed}"
            costs = costs_of([result])
            rows.append((name, *_tokens(costs), *_hours(costs, price)))
    return CostTable("By attempt", ("", *_TOKENS, *_HOURS), tuple(rows))


def model_table(results: Iterable[Result]) -> CostTable:
    """Return the costs of every model that the gateways have counted, the dearest first."""
    uses = (result.model_use for result in results if result.model_use is not None)
    models = total(use.metered for use in uses if use.metered is not None).models
    first = sorted(models, key=lambda one: (-(one.usd or 0.0), -one.usage.total_tokens, one.model))
    rows = tuple(tuple(_model(one)) for one in first[:SHOWN_MODELS])
    return CostTable("By model", _OF_MODELS, rows)


def _tokens(costs: Costs) -> Iterator[str]:
    some = costs.has_figures
    yield show_tokens(costs.tokens) if some else ""
    for number in (costs.cached_tokens, costs.reasoning_tokens, costs.calls):
        yield str(number) if some and costs.by_agents < costs.attempts else ""
    yield shown_usd(costs) if some else ""


def _shares(costs: Costs) -> Iterator[str]:
    least = "" if costs.is_complete else "at least "
    for usd in (costs.usd_per_valid, costs.usd_per_medal):
        yield "" if usd is None else f"{least}{show_usd(usd)}"
    yield "" if costs.medals_per_usd is None else f"{costs.medals_per_usd:.4g}"


def _hours(costs: Costs, gpu_hour_usd: float | None) -> Iterator[str]:
    yield f"{costs.agent_hours:.2f}"
    yield f"{costs.gpu_hours:.2f}"
    yield "" if gpu_hour_usd is None else show_usd(gpu_hour_usd * costs.gpu_hours)


def _model(one: ModelSpending) -> Iterator[str]:
    yield one_line(f"{one.upstream}: {one.model or 'no model'}")
    yield str(one.calls)
    yield str(one.errors)
    usage = one.usage
    for number in (usage.input_tokens, usage.cached_tokens, usage.output_tokens):
        yield str(number)
    yield str(usage.reasoning_tokens)
    yield f"{one.seconds / 3600:.2f}"
    if one.usd is None:
        yield "cost unknown"
    else:
        yield f"{'' if one.is_complete else 'at least '}{show_usd(one.usd)}"
