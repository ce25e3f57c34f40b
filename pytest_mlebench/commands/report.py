"""Show a run or a report as the terminal summary does, and write it in other formats.

FILE is the folder of a run, a report that --mle-report wrote (.json), or a grading report of the
reference implementation. Several grading reports, or a folder of them, are results of one agent:
the n-th entry of a competition over all files is its n-th seed, whatever part each file holds.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

from pytest_mlebench.commands.shared import (
    add_competitions_option,
    add_split_option,
    ascii_only,
    registry_of,
    say,
    say_lines,
    split_names,
)
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.curves import write_plots
from pytest_mlebench.reports.findings import audit_lines
from pytest_mlebench.reports.gates import check_gates, parse_fail_under
from pytest_mlebench.reports.membership import split_ids
from pytest_mlebench.reports.report import Report, check_suffix
from pytest_mlebench.reports.spending_gate import parse_fail_over
from pytest_mlebench.reports.summary import WIDTH, problem_lines, summary_lines

PLOTS = ".svg"
MAX_COLUMNS = 400  # of a sentence where no terminal bounds it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", nargs="+", type=Path, metavar="FILE", help="what to report on")
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        default=[],
        metavar="PATH",
        help="write the report; by suffix .json .html .csv .md; every plot as .svg and .csv with "
        "NAME.svg; repeatable",
    )
    add_split_option(parser, "only these splits; what the report lacks of them is missing")
    parser.add_argument(
        "--fail-under",
        action="append",
        default=[],
        metavar="[SPLIT:]PERCENT",
        help="exit with status 1 when the any-medal rate is lower; repeatable",
    )
    parser.add_argument(
        "--fail-over",
        metavar="AMOUNT",
        help="exit with status 1 when the models cost more, as 250usd, or nobody knows what",
    )
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Report."""
    registry = registry_of(args)
    gates = [parse_fail_under(each, registry.splits(), "--fail-under") for each in args.fail_under]
    spending = parse_fail_over(args.fail_over, "--fail-over")
    drawings = [Path(path) for path in args.output if path.lower().endswith(PLOTS)]
    others = [path for path in args.output if not path.lower().endswith(PLOTS)]
    outputs = [check_suffix(path, "--output") for path in others]
    report = Report.load(args.file, registry)
    if names := split_names(args):
        report = only_splits(report, names, registry)
    judged = [gate.split for gate in gates if gate.split]
    report = replace(report, membership=report.membership.including(registry, judged))
    _show(report)
    for path in outputs:
        report.write(path)
        say(f"wrote {path}")
    for path in drawings:
        for file in write_plots(report, path):
            say(f"wrote {file}")
    failures = check_gates(gates, report.results, report.membership)
    if spending is not None and (sentence := spending.judge(report.results)) is not None:
        failures.append(sentence)
    for sentence in failures:
        say(sentence)
    return 1 if failures else 0


def only_splits(report: Report, names: list[str], registry: Registry) -> Report:
    """Return the report of exactly the competitions of some splits."""
    ids = dict.fromkeys(i for name in names for i in split_ids(registry, name))
    disclosure = replace(report.disclosure, splits=tuple(names))
    return replace(report, disclosure=disclosure).only(ids, registry)


def _show(report: Report) -> None:
    conditions = report.disclosure.lines()
    for line in conditions:
        say(textwrap.fill(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False))
    if conditions:
        say()
    lines = summary_lines(
        report.results,
        report.membership,
        ascii_only=ascii_only(),
        gpu_hour_usd=report.disclosure.gpu_hour_usd,
    )
    say_lines(lines)
    say()
    for line in report.comparability.lines(WIDTH):
        say(line)
    for line in audit_lines(report.audit, WIDTH) if report.audit else ():
        say(line)
    for name, rate in report.without_flagged.items():
        say(f"any medal without flagged attempts, {name}: {rate.text()}")
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else MAX_COLUMNS
    if problems := problem_lines(report.results, max(WIDTH, width)):
        say()
        say_lines(problems)
