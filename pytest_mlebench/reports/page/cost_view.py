"""What the page shows of costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_mlebench._plain_text import one_line
from pytest_mlebench.reports.cost_tables import CostTable, group_table, model_table
from pytest_mlebench.reports.cost_text import cost_lines, cost_notes

if TYPE_CHECKING:
    from pytest_mlebench.reports.report import Report


@dataclass(frozen=True)
class CostView:
    """Sentences, tables, and notes about single attempts."""

    lines: tuple[str, ...]  # none: there is nothing to say
    tables: tuple[CostTable, ...]
    notes: tuple[str, ...]


def view_costs(report: Report) -> CostView:
    """Return what the page shows; what each attempt cost is with the attempt."""
    tables = (group_table(report), model_table(report.results))
    return CostView(
        lines=tuple(cost_lines(report.costs, report.disclosure.gpu_hour_usd)),
        tables=tuple(table for table in tables if table.rows),
        notes=tuple(map(one_line, cost_notes(report.results))),
    )
