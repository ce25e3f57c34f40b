"""What JUnit XML says of the whole session: properties of its test suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from _pytest.junitxml import xml_key  # where the fixture record_testsuite_property finds it, too

from pytest_mlebench._plain_text import one_line
from pytest_mlebench.reports.costs import Costs
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import named


def add_totals(config: pytest.Config, report: Report) -> None:
    """Add rates and costs to the file that ``--junit-xml`` writes, if there is one."""
    xml = config.stash.get(xml_key, None)
    if xml is None:
        return
    for name, value in _totals(report):
        xml.add_global_property(name, value)


def _totals(report: Report) -> Iterator[tuple[str, object]]:
    several = len(report.blocks) > 1
    for row in report.rates:
        name = one_line(named(row, row.name, several=several))
        yield f"mle_any_medal[{name}]", row.rates["any_medal"].text()
        yield from _costs(row.costs, f"[{name}]")
    yield from _costs(report.costs, "")
    if report.gpu_usd is not None:
        yield "mle_gpu_usd", report.gpu_usd


def _costs(costs: Costs, of: str) -> Iterator[tuple[str, object]]:
    """Yield figures; what nobody knows is left out, for it is not zero."""
    facts: dict[str, object] = {"agent_hours": costs.agent_hours, "gpu_hours": costs.gpu_hours}
    if costs.has_figures:
        facts |= {
            "tokens": costs.tokens,
            "cached_tokens": costs.cached_tokens,
            "reasoning_tokens": costs.reasoning_tokens,
            "model_calls": costs.calls,
            "attempts_without_figures": costs.without_figures,
            "usd": costs.usd,
            "known_usd": costs.known_usd if costs.has_usd else None,
            "usd_per_valid": costs.usd_per_valid,
            "usd_per_medal": costs.usd_per_medal,
        }
    for name, value in facts.items():
        if value is not None:
            yield f"mle_{name}{of}", value
