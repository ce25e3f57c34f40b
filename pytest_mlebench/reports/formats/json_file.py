"""Our own report format: versioned JSON, described in docs/reports.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.reports.costs import costs_by_competition
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.findings import Audit
from pytest_mlebench.reports.json_table import json_table, text_with_rows
from pytest_mlebench.reports.membership import Membership
from pytest_mlebench.reports.report_content import Content
from pytest_mlebench.reports.results import ItemKey, Result

if TYPE_CHECKING:
    from pytest_mlebench.reports.report import Report

FORMAT = "pytest-mlebench report"
SCHEMA = 1  # grows when a key changes its meaning or goes; new keys alone do not count


def render(report: Report, folder: Path | None = None) -> str:
    """Return the text of the file."""
    data = {
        "format": FORMAT,
        "schema": SCHEMA,
        "created": report.created,
        "disclosure": {
            **report.disclosure.to_dict(),
            "agent_hours": round(report.agent_hours, 4),
            "format_checks": report.format_checks,
        },
        "comparability": report.comparability.to_dict(),
        "membership": report.membership.to_dict(),
        "rates": [row.to_dict() for row in report.rates],
        "costs": _costs(report),
        "curves": {
            plot.name: {
                name: {f"{point.x:g}": point.to_dict() for point in curve}
                for name, curve in plot.curves.items()
            }
            for plot in report.plots
        },
        "audit": None if report.audit is None else report.audit.to_dict(),
        "any_medal_without_flagged": {
            name: rate.to_dict() for name, rate in report.without_flagged.items()
        },
        "results": [result.to_dict() for result in report.results],
    }
    return text_with_rows(data, "results")


def _costs(report: Report) -> dict[str, Any]:
    """Return what everything cost together, and each competition of each agent."""
    competitions = [
        {"agent": block[0].agent, "conditions": block[0].conditions, "competition": name}
        | costs.to_dict()
        for block in report.blocks
        for name, costs in costs_by_competition(block).items()
    ]
    return {
        "total": report.costs.to_dict() | {"gpu_usd": report.gpu_usd},
        "competitions": competitions,
    }


def load_json(path: Path) -> Any:
    """Read a JSON file, or say in one sentence why it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the report {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid JSON: {error}") from None


def parse(data: object, where: str) -> Content:
    """Return what the parsed file says but for the rates, which are computed anew."""
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where}: not a report: must be an object, given: {type(data).__name__}")
    if data.get("format") != FORMAT:
        raise ConfigError(
            f"{where}: neither a report of pytest-mlebench nor a grading report of the "
            "reference implementation"
        )
    if data.get("schema") != SCHEMA:
        raise ConfigError(
            f"{where}: has schema {data.get('schema')!r}, this version reads schema {SCHEMA}"
        )
    results = data.get("results")
    if not isinstance(results, list):
        raise ConfigError(f"{where}: results must be a list, given: {type(results).__name__}")
    parsed = tuple(
        Result.from_dict(result, f"{where}: results[{number}]")
        for number, result in enumerate(results)
    )
    _refuse_twins(parsed, where)
    return Content(
        results=parsed,
        disclosure=Disclosure.from_dict(data.get("disclosure"), f"{where}: disclosure"),
        membership=Membership.from_dict(data.get("membership"), f"{where}: membership"),
        created=json_table(data, where).text("created"),
        audit=None if (audit := data.get("audit")) is None else Audit.from_dict(audit, where),
    )


def _refuse_twins(results: tuple[Result, ...], where: str) -> None:
    seen: set[ItemKey] = set()
    for result in results:
        if result.key in seen:
            raise ConfigError(
                f"{where}: {result.competition} has two results for seed {result.seed}"
            )
        seen.add(result.key)
