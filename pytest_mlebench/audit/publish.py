"""What a leaderboard asks for: grading reports, a line for each, a row of its table, a disclosure.

The reference implementation aggregates a result by the mean over its seeds and the sample standard
deviation divided by the root of their number; on these files that gives the figures of the row.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_mlebench._files import write_text
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.reports.board import SPLITS, entry_of
from pytest_mlebench.reports.comparability import MIN_SEEDS
from pytest_mlebench.reports.formats.markdown import escape, render, table
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import NOT_RUN

EXPERIMENTS = "runs/run_group_experiments.csv"
ROW = "leaderboard_row.md"
DISCLOSURE = "disclosure.md"
HEAD = (
    "Agent",
    "LLM(s) used",
    "Low == Lite (%)",
    "Medium (%)",
    "High (%)",
    "All (%)",
    "Running Time (hours)",
    "Date",
    "Source Code Available",
    "Grading Reports Available",
)
NEEDED = ("llms", "url", "statement")  # a paper may come later
SHOWN_PROBLEMS = 20

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Publication:
    """The files of a publication by their paths, and what is missing in it."""

    files: Mapping[str, str]
    missing: tuple[str, ...]


def publication(report: Report, group: str) -> Publication:
    """Return what is to be published of a report under a group's name."""
    if not _NAME.fullmatch(group):
        raise ConfigError(f"--group must be letters, digits and ._-, given: {group!r}")
    report.require_one_agent("a publication")
    missing = tuple(_missing(report))
    files = {
        f"runs/{name}/{name}_grading_report.json": json.dumps(report.to_reference(seed), indent=2)
        + "\n"
        for seed, name in _groups(report, group)
    }
    files[EXPERIMENTS] = _experiments(report, group)
    files[ROW] = table(HEAD, [_row(report)]) + "\n"
    files[DISCLOSURE] = _page(report, missing)
    return Publication(files, missing)


def write_publication(found: Publication, folder: Path) -> list[Path]:
    """Write the files below a folder that is new or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"--output must be a folder that is new or empty, given: {folder}")
    written = []
    for name, text in found.files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, text)
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error.strerror}") from None
        written.append(path)
    return written


def refusal(found: Publication) -> str:
    """Return why a publication is refused, and the way out."""
    shown = [*found.missing[:SHOWN_PROBLEMS]]
    if len(found.missing) > SHOWN_PROBLEMS:
        shown.append(f"and {len(found.missing) - SHOWN_PROBLEMS} more")
    listed = "\n".join(f"  - {problem}" for problem in shown)
    return f"not fit to be published, --incomplete writes it with this list on its page:\n{listed}"


def _missing(report: Report) -> Iterable[str]:
    seeds = len(report.seeds)
    if seeds < MIN_SEEDS:
        yield f"{seeds} seed{'s' if seeds != 1 else ''}, at least {MIN_SEEDS} are needed"
    whole = entry_of(report).rates
    if not whole:
        yield "no whole split of the benchmark"
    for row in report.rates:
        if row.name in SPLITS and not row.is_whole:
            yield f"{row.name}: {row.of - row.competitions} of {row.of} competitions are missing"
    for result in report.results:
        if result.status in NOT_RUN:
            yield f"{result.competition} seed {result.seed}: {result.status}"
    yield from _audit_problems(report)
    said = dict(report.comparability.statements)
    for key in NEEDED:
        if key not in said:
            yield f"no {key} in agent.toml"


def _audit_problems(report: Report) -> Iterable[str]:
    """Yield the attempts that are flagged, and those that nobody has looked at."""
    if report.audit is None:
        yield "no audit, which pytest-mlebench audit RUN makes where the attempts are"
        return
    for attempt in report.audit.flagged:
        yield f"{attempt.name}: flagged by the audit"
    known = {attempt.key for attempt in report.audit.attempts}
    for result in report.results:
        if result.run is not None and result.key not in known:
            yield f"{result.competition} seed {result.seed}: not audited"


def _groups(report: Report, group: str) -> list[tuple[int, str]]:
    return [(seed, f"{group}_{number}") for number, seed in enumerate(report.seeds, start=1)]


def _experiments(report: Report, group: str) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("experiment_id", "run_group"))
    writer.writerows((group, name) for _, name in _groups(report, group))
    return out.getvalue()


def _row(report: Report) -> list[str]:
    entry, disclosure = entry_of(report), report.disclosure
    agent = escape(entry.agent)
    if disclosure.url:
        agent = f"[{agent}]({_address(disclosure.url)})"
    cells = [
        "N/A" if (rate := entry.rates.get(split)) is None else rate.text.replace("±", "± ")
        for split in SPLITS
    ]
    hours = "unknown" if entry.hours is None else f"{entry.hours:g}"
    source = "✓" if disclosure.url else "X"
    return [agent, escape(entry.llms), *cells, hours, entry.date, source, "✓"]


def _address(url: str) -> str:
    """Return an address that stays inside its brackets."""
    return re.sub(r"[\s()<>|]", "", url)


def _page(report: Report, missing: Iterable[str]) -> str:
    lines = [f"- {escape(problem)}" for problem in missing]
    head = ["# What is missing", "", *lines, "", ""] if lines else []
    return "\n".join(head) + render(report)
