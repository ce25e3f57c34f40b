"""A report as CSV: one row per competition and seed, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlebench._plain_text import one_line
from pytest_mlebench.gateway.model_use import ModelUse
from pytest_mlebench.reports.costs import costs_of
from pytest_mlebench.reports.findings import AttemptFindings
from pytest_mlebench.reports.results import Result

if TYPE_CHECKING:
    from pytest_mlebench.reports.report import Report

COLUMNS = (
    "competition",
    "split",
    "category",
    "seed",
    "outcome",
    "score",
    "medal",
    "above_median",
    "percentile",
    "gold",
    "silver",
    "bronze",
    "median",
    "lower_is_better",
    "teams",
    "submission_exists",
    "known_leak",
    "suspected_leak",
    "agent_seconds",
    "format_checks",
    "failure",
    "problem",
    "run",
    "agent",
    "conditions",
    "fingerprint",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "model_calls",
    "unmetered_calls",
    "usd",
    "known_usd",
    "usd_source",
    "lost_usd",
    "gpus",
    "gpu_hours",
    "gpu_usd",
    "models",
    "extra",
    "audit",
    "findings",
)


def render(report: Report, folder: Path | None = None) -> str:
    """Return the text of the file."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    audited = {} if report.audit is None else {each.key: each for each in report.audit.attempts}
    for result in report.results:
        writer.writerow(_row(result, report) | _audit(audited.get(result.key)))
    return out.getvalue()


def _row(result: Result, report: Report) -> dict[str, object]:
    grade = {} if result.grade is None else result.grade.to_dict()
    row = {name: grade.get(name) for name in COLUMNS}
    row |= {
        "competition": result.competition,
        "split": report.membership.benchmark_split(result.competition),
        "category": report.membership.categories.get(result.competition),
        "seed": result.seed,
        "outcome": result.status,
        "medal": str(result.medal),
        "above_median": result.above_median,
        "known_leak": result.competition in report.membership.leaky,
        "suspected_leak": result.competition in report.membership.suspected,
        "agent_seconds": result.agent_seconds,
        "format_checks": result.format_checks,
        "failure": result.failure,
        "problem": _harmless(result.problem),
        "run": result.run,
        "agent": _harmless(result.agent),
        "conditions": result.conditions,
        "fingerprint": result.fingerprint,
        **_costs(result, report.disclosure.gpu_hour_usd),
        "extra": json.dumps(result.extra, sort_keys=True, default=str) if result.extra else None,
    }
    return {name: str(v).lower() if isinstance(v, bool) else v for name, v in row.items()}


def _audit(found: AttemptFindings | None) -> dict[str, object]:
    """Return the gravest level of an attempt's findings; an empty cell is one nobody looked at."""
    if found is None:
        return {}
    grave = [finding.what for finding in found.findings if finding.level != "info"]
    level = found.level if found.findings else "nothing"
    return {"audit": level, "findings": _harmless("; ".join(grave))}


def _costs(result: Result, gpu_hour_usd: float | None) -> dict[str, object]:
    """Return the figures of models and GPUs; an empty cell is a figure that nobody knows."""
    use = ModelUse() if result.model_use is None else result.model_use
    gpu_hours = costs_of([result]).gpu_hours
    return {
        "input_tokens": use.input_tokens,
        "output_tokens": use.output_tokens,
        "cached_tokens": use.cached_tokens,
        "reasoning_tokens": use.reasoning_tokens,
        "model_calls": use.calls,
        "unmetered_calls": None if use.metered is None else use.unmetered,
        "usd": use.usd,
        "known_usd": use.known_usd,
        "usd_source": use.source,
        "lost_usd": result.lost_usd,
        "gpus": result.gpus,
        "gpu_hours": gpu_hours,
        "gpu_usd": None if gpu_hour_usd is None else gpu_hour_usd * gpu_hours,
        "models": _harmless(one_line(use.by_model) or None),
    }


def _harmless(text: str | None) -> str | None:
    """Keep a spreadsheet from taking a text that an agent had a hand in for a formula."""
    return f"'{text}" if text and text[0] in "=+-@\t\r" else text
