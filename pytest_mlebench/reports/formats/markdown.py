"""A report as Markdown: for a release note, a pull request, a job summary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlebench._units import show_score
from pytest_mlebench.reports.breakdown import failures_text, rates_by_category
from pytest_mlebench.reports.cost_tables import attempt_table, group_table, model_table
from pytest_mlebench.reports.cost_text import cost_lines, cost_notes
from pytest_mlebench.reports.over_time import HEAD, followed, milestones
from pytest_mlebench.reports.rates import MEASURES, Rate, SplitRates
from pytest_mlebench.reports.results import Result, extra_facts, named
from pytest_mlebench.reports.time_curve import QUOTED_HOURS, UPPER_BOUND

if TYPE_CHECKING:
    from pytest_mlebench.reports.report import Report

_OF_EXTRA = ("competition", "seed", "what", "value")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~])")


def render(report: Report, folder: Path | None = None) -> str:
    """Return the text of the file."""
    agent = report.disclosure.agent
    parts = [
        f"# {'MLE-bench report' if agent is None else f'MLE-bench report: {escape(agent)}'}",
        _rates(report),
        _notes(report.rates),
        _conditions(report),
        "## Competitions",
        table(
            ("competition", "split", "seed", "outcome", "score", "medal", "percentile", "leak"),
            [_row(result, report) for result in report.results],
        ),
        _by_category(report),
        _curves(report),
        _costs(report),
        _audit(report),
        _over_time(report.results),
        _problems(report.results),
        _extra(report.results),
        "## Disclosure",
        "\n".join(f"- {escape(line)}" for line in _disclosure(report)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; the cells are escaped already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escape(text: str) -> str:
    """Return *text* on one line with nothing in it that Markdown or HTML would act upon."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _rates(report: Report) -> str:
    several = len(report.blocks) > 1
    names = [name.replace("_", " ") for name in MEASURES]
    rows = [
        [
            escape(named(row, row.name, several=several)),
            str(row.competitions) if row.is_whole else f"{row.competitions} of {row.of}",
            str(len(row.seeds)),
            *(rate.text() for rate in row.rates.values()),
            row.rates["any_medal"].interval_text(),
            _optional(row.without_leaks),
            f"{row.not_run} of {row.runs}",
        ]
        for row in report.rates
    ]
    more = ("95 % interval", "without leaks", "missing runs")
    return table(("split", "competitions", "seeds", *names, *more), rows)


def _optional(rate: Rate | None) -> str:
    return "" if rate is None else rate.text()


def _notes(rates: Sequence[SplitRates]) -> str:
    many = any(len(row.seeds) > 1 for row in rates)
    basis = "mean ± standard error over seeds" if many else "of one seed"
    return (
        f"Rates in percent, {basis}. Runs that are missing or ended in an error of the benchmark "
        "count as no medal."
    )


def _row(result: Result, report: Report) -> list[str]:
    grade = result.grade
    score = None if grade is None else grade.score
    percentile = None if grade is None else grade.percentile
    return [
        escape(named(result, result.competition, several=len(report.blocks) > 1)),
        escape(report.membership.benchmark_split(result.competition)),
        str(result.seed),
        result.status,
        "" if score is None else show_score(score),
        str(result.medal) if result.medal else "",
        "" if percentile is None else f"{percentile:.1f}",
        report.membership.leak(result.competition),
    ]


def _costs(report: Report) -> str:
    lines = cost_lines(report.costs, report.disclosure.gpu_hour_usd)
    if not lines:
        return ""
    parts = ["## Costs", "\n".join(f"- {escape(line)}" for line in lines)]
    for each in (group_table(report), model_table(report.results), attempt_table(report)):
        if each.rows:
            rows = [[*map(escape, row)] for row in each.rows]
            parts += [f"### {each.title}", table(each.head, rows)]
    parts.append("\n".join(f"- {escape(note)}" for note in cost_notes(report.results)))
    return "\n\n".join(filter(None, parts))


def _extra(results: Sequence[Result]) -> str:
    """Return what hooks have added to attempts."""
    rows = [
        [escape(result.competition), str(result.seed), escape(key), escape(value)]
        for result in results
        for key, value in extra_facts(result)
    ]
    return f"## Added by hooks\n\n{table(_OF_EXTRA, rows)}" if rows else ""


def _conditions(report: Report) -> str:
    """Return what the numbers are comparable with."""
    found = report.comparability
    lines = [f"**{escape(found.sentence)}**", *map(escape, found.guarantees)]
    lines += [f"{key}, by the author's own word: {escape(text)}" for key, text in found.statements]
    return "## Conditions\n\n" + "\n".join(f"- {line}" for line in lines)


def _curves(report: Report) -> str:
    """Return what more attempts and less time give, a table for each plot."""
    parts = []
    for plot in report.plots:
        marks = sorted({point.x for curve in plot.curves.values() for point in curve})
        shown = [x for x in marks if plot.axis != "hours" or x in QUOTED_HOURS] or marks[-1:]
        rows = []
        for name, curve in plot.curves.items():
            at = {point.x: point for point in curve}
            rows.append([escape(name), *(at[x].text if x in at else "" for x in shown)])
        head = ("split", *(f"{x:g} {plot.axis}" for x in shown))
        note = f"\n\nOf a shorter limit this is {UPPER_BOUND}." if plot.axis == "hours" else ""
        parts.append(f"### {plot.title}\n\n{table(head, rows)}{note}")
    return "\n\n".join(["## Curves", *parts]) if parts else ""


def _by_category(report: Report) -> str:
    several = len(report.blocks) > 1
    rows = [
        [
            escape(named(row, row.name, several=several)),
            str(row.competitions),
            row.rates["any_medal"].text(),
            row.rates["any_medal"].interval_text(),
        ]
        for row in rates_by_category(report)
    ]
    head = ("category", "competitions", "any medal", "95 % interval")
    return f"## Categories\n\n{table(head, rows)}" if len(rows) > 1 else ""


def _audit(report: Report) -> str:
    """Return what an audit has found, and the rates without flagged attempts."""
    if report.audit is None:
        return ""
    rows = [
        [
            escape(each.name),
            finding.level,
            escape(finding.what),
            escape("; ".join(finding.evidence)),
        ]
        for each in report.audit.attempts
        for finding in each.findings
    ]
    lines = [
        f"- any medal without flagged attempts, {escape(name)}: {rate.text()}"
        for name, rate in report.without_flagged.items()
    ]
    found = table(("attempt", "level", "what", "evidence"), rows) if rows else "Nothing was found."
    return "\n\n".join(filter(None, ("## Audit", "\n".join(lines), found)))


def _over_time(results: Sequence[Result]) -> str:
    rows = [[*map(escape, milestones(result))] for result in followed(results)]
    return f"## Over time\n\n{table(HEAD, rows)}" if rows else ""


def _problems(results: Sequence[Result]) -> str:
    lines = [
        f"- {escape(result.competition)}, seed {result.seed} ({result.status}): "
        f"{escape(result.problem)}"
        for result in results
        if result.problem
    ]
    if not lines:
        return ""
    kinds = [f"By kind: {text}.", ""] if (text := failures_text(results)) else []
    return "\n".join(["## Problems", "", *kinds, *lines])


def _disclosure(report: Report) -> list[str]:
    return [
        *report.disclosure.lines(),
        f"agent hours: {report.agent_hours:.2f}",
        f"format checks: {report.format_checks}",
        f"report made: {report.created}",
    ]
