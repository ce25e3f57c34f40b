"""A report as one HTML page without scripts: rates, places on leaderboards, curves over time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_mlebench._units import show_duration, show_size
from pytest_mlebench.grade import Snapshot
from pytest_mlebench.medals import Medal
from pytest_mlebench.reports.cost_text import HEAD as HEAD_OF_COSTS
from pytest_mlebench.reports.cost_text import cost_lines, cost_notes, cost_rows
from pytest_mlebench.reports.over_time import HEAD, after, followed, milestones
from pytest_mlebench.reports.rates import MEASURES
from pytest_mlebench.reports.results import Result, named

if TYPE_CHECKING:
    from pytest_mlebench.reports.report import Report

STATS = "stats.jsonl"  # samples that a sandbox may leave beside the record
MOST_SAMPLES = 4_000

_BLUE, _RED = "#2f81f7", "#b42318"
_DOTS = {Medal.GOLD: "#d4a72c", Medal.SILVER: "#8c959f", Medal.BRONZE: "#b87333"}

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 68em; padding: 0 1em;
       color: #1b1f24; background: #fff; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2em; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 600; }
th, td { padding: .25em .7em; border-bottom: 1px solid #d8dee4; white-space: nowrap; }
td.wide { white-space: normal; } td.number, th.number { text-align: right;
       font-variant-numeric: tabular-nums; }
.gold { color: #8a6d00; font-weight: 600; } .silver { color: #57606a; font-weight: 600; }
.bronze { color: #9a5b22; font-weight: 600; } .failed, .error, .missing { color: #b42318; }
.note { color: #57606a; } svg { vertical-align: middle; }
@media (prefers-color-scheme: dark) {
  body { color: #e6edf3; background: #0d1117; } th, td { border-color: #30363d; }
  .gold { color: #e3b341; } .silver, .note { color: #9da7b1; } .bronze { color: #e0975a; }
  .failed, .error, .missing { color: #ff7b72; } }
"""


def render(report: Report) -> str:
    """Return the text of the file."""
    agent = report.disclosure.agent
    title = "MLE-bench report" if agent is None else f"MLE-bench report: {agent}"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        _rates(report),
        "<h2>Conditions</h2>",
        _conditions(report),
        "<h2>Competitions</h2>",
        _competitions(report),
        _costs(report),
        _over_time(report.results),
        _problems(report.results),
        "<h2>Disclosure</h2>",
        _disclosure(report),
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _rates(report: Report) -> str:
    several = len(report.blocks) > 1
    head = ["split", "competitions", "seeds", *(name.replace("_", " ") for name in MEASURES)]
    rows = [
        [
            escape(named(row, row.name, several=several)),
            str(row.competitions) if row.is_whole else f"{row.competitions} of {row.of}",
            str(len(row.seeds)),
            *(rate.text() for rate in row.rates.values()),
            row.rates["any_medal"].interval_text(),
            "" if row.without_leaks is None else row.without_leaks.text(),
            f"{row.not_run} of {row.runs}",
        ]
        for row in report.rates
    ]
    head += ["95 % interval", "without leaks", "missing runs"]
    note = '<p class="note">Rates in percent; whatever has no result counts as no medal.</p>'
    return _table(head, rows, first_number=1) + note


def _conditions(report: Report) -> str:
    """Return what the numbers are comparable with: the statement, then every condition."""
    found = report.comparability
    words = {"standard": "", "other": "not standard", "unknown": "not known"}
    rows = [
        [escape(one.name), escape(one.value), words[one.verdict], escape(one.standard)]
        for one in found.conditions
    ]
    lines = [
        *found.guarantees,
        *(f"{key}, by the author's own word: {text}" for key, text in found.statements),
    ]
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    table = _table(["condition", "here", "", "standard"], rows, 99, wide=True)
    return f"<p><strong>{escape(found.sentence)}</strong></p><ul>{items}</ul>{table}"


def _competitions(report: Report) -> str:
    head = ["competition", "seed", "medal", "score", "among the teams", "time", "memory"]
    return _table(head, [_row(result, report) for result in report.results], first_number=99)


def _row(result: Result, report: Report) -> list[str]:
    grade = result.grade
    leak = " *" if result.competition in report.membership.leaky else ""
    word = str(result.medal) if result.medal else "" if result.valid else result.status
    seconds = result.agent_seconds
    return [
        escape(named(result, result.competition, several=len(report.blocks) > 1)) + leak,
        str(result.seed),
        f'<span class="{word}">{word}</span>',
        "" if grade is None or grade.score is None else f"{grade.score:.6g}",
        _place(result),
        "" if seconds is None else show_duration(max(seconds, 0.1)),
        _memory(result),
    ]


def _place(result: Result) -> str:
    """Return a strip from the last team to the first, with the score's place on it."""
    grade = result.grade
    if grade is None or grade.percentile is None:
        return ""
    at = 4 + 1.5 * grade.percentile
    title = f"better than {grade.percentile:g} % of {grade.teams} teams"
    return (
        f'<svg width="158" height="16" role="img"><title>{escape(title)}</title>'
        '<line x1="4" x2="154" y1="8" y2="8" stroke="#8c959f" stroke-width="2"/>'
        f'<circle cx="{at:.1f}" cy="8" r="5" fill="{_BLUE}"/></svg> {grade.percentile:.0f} %'
    )


def _memory(result: Result) -> str:
    """Return the memory over time as a small curve, where a sandbox has sampled it."""
    samples = list(_samples(result))
    if len(samples) < 2:
        return ""
    peak, end = max(memory for _, memory in samples) or 1, samples[-1][0] or 1
    points = " ".join(f"{120 * t / end:.1f},{22 - 20 * m / peak:.1f}" for t, m in samples)
    return (
        f'<svg width="120" height="24" role="img"><title>peak {show_size(peak)}</title>'
        f'<polyline points="{points}" fill="none" stroke="{_BLUE}"/></svg> {show_size(peak)}'
    )


def _samples(result: Result) -> Iterable[tuple[float, float]]:
    path = None if result.run is None else Path(result.run, STATS)
    if path is None or not path.is_file():
        return
    with path.open(encoding="utf-8") as file:
        for _, line in zip(range(MOST_SAMPLES), file, strict=False):
            try:
                sample = json.loads(line)
                yield float(sample["t"]), float(sample["memory"])
            except (ValueError, KeyError, TypeError):  # cut off by a kill
                return


def _costs(report: Report) -> str:
    """Return what the attempts used of models and machines, where there is anything to show."""
    lines = cost_lines(report.costs, report.disclosure.gpu_hour_usd)
    if not lines:
        return ""
    rows = [[*map(escape, row)] for row in cost_rows(report)]
    text = "".join(f"<p>{escape(line)}</p>" for line in lines)
    notes = "".join(f"<li>{escape(note)}</li>" for note in cost_notes(report.results))
    more = f"<ul>{notes}</ul>" if notes else ""
    return f"<h2>Costs</h2>{text}" + _table(HEAD_OF_COSTS, rows, first_number=1) + more


def _over_time(results: Sequence[Result]) -> str:
    """Return what became of the submissions that were kept while agents ran."""
    rows = [[*map(escape, milestones(result)), _course(result)] for result in followed(results)]
    if not rows:
        return ""
    return "<h2>Over time</h2>" + _table([*HEAD, "percentile over time"], rows, 99)


def _course(result: Result) -> str:
    """Return the percentile over time as steps, with a dot for each submission."""
    kept = result.snapshots
    end = max(result.agent_seconds or 0, kept[-1].seconds) or 1

    def at(seconds: float, percentile: float) -> str:
        return f"{5 + 290 * seconds / end:.1f},{57 - 0.52 * percentile:.1f}"

    steps, height = [at(0, 0)], 0.0
    for one in kept:
        steps.append(at(one.seconds, height))
        height = one.percentile or 0
        steps.append(at(one.seconds, height))
    steps.append(at(end, height))
    dots = "".join(_dot(one, at(one.seconds, one.percentile or 0)) for one in kept)
    return (
        '<svg width="300" height="62" role="img">'
        '<line x1="5" x2="295" y1="57" y2="57" stroke="#8c959f"/>'
        f'<polyline points="{" ".join(steps)}" fill="none" stroke="{_BLUE}"/>{dots}</svg>'
    )


def _dot(one: Snapshot, where: str) -> str:
    x, y = where.split(",")
    color = _RED if one.score is None else _DOTS.get(one.medal, _BLUE)
    what = one.problem if one.score is None else f"{one.score:.6g}, {_medal(one)}"
    title = escape(f"after {after(one)}: {what or 'not graded'}")
    return f'<circle cx="{x}" cy="{y}" r="4" fill="{color}"><title>{title}</title></circle>'


def _medal(one: Snapshot) -> str:
    return str(one.medal) if one.medal else "no medal"


def _problems(results: Sequence[Result]) -> str:
    rows = [
        [f"{escape(result.competition)} seed {result.seed}", result.status, escape(result.problem)]
        for result in results
        if result.problem
    ]
    if not rows:
        return ""
    return "<h2>Problems</h2>" + _table(["attempt", "outcome", "why"], rows, 99, wide=True)


def _disclosure(report: Report) -> str:
    lines = [
        *report.disclosure.lines(),
        f"agent hours: {report.agent_hours:.2f}",
        f"format checks: {report.format_checks}",
        f"report made: {report.created}",
    ]
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _table(
    head: Sequence[str], rows: Iterable[Sequence[str]], first_number: int, *, wide: bool = False
) -> str:
    """Return a table; the cells are escaped already, from *first_number* on they are numbers."""

    def cells(tag: str, row: Sequence[str]) -> str:
        kinds = ("number" if k >= first_number else "wide" if wide else "" for k in range(len(row)))
        return "".join(
            f'<{tag} class="{kind}">{cell}</{tag}>' if kind else f"<{tag}>{cell}</{tag}>"
            for kind, cell in zip(kinds, row, strict=True)
        )

    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><tr>{cells('th', head)}</tr>\n{body}</table>"
