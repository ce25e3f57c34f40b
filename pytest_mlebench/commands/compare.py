"""Compare two reports or runs: the rates of A and B on the competitions that both have.

A and B are each the folder of a run, a report, a grading report of the reference implementation,
or a folder of such (its seeds). The p-value is that of an exact permutation test: the runs of each
competition are permuted between A and B in every way there is.

With --by, any number of runs is drawn over one of their budgets; which pairs differ by more than
chance is corrected for their number (Holm).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_mlebench._files import write_text
from pytest_mlebench.commands.shared import (
    add_competitions_option,
    registry_of,
    say,
    say_lines,
    say_notes,
)
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.reports.budget_curve import UNITS, budget_curve, budget_lines
from pytest_mlebench.reports.compare import compare, comparison_lines
from pytest_mlebench.reports.report import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("a", type=Path, metavar="A", help="the earlier report or run")
    parser.add_argument("b", type=Path, metavar="B", help="the later report or run")
    parser.add_argument(
        "more", nargs="*", type=Path, metavar="C", help="further reports or runs, with --by"
    )
    parser.add_argument("--by", choices=list(UNITS), help="draw the rate over this budget")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="NAME.svg",
        help="with --by: write the curve as .svg and as .csv",
    )
    parser.add_argument(
        "--fail-on-regression",
        action="store_true",
        help="exit with status 1 when the any-medal rate of B is significantly lower",
    )
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Compare."""
    if args.by is not None:
        return _by_budget(args)
    if args.more:
        raise ConfigError("more than two reports are compared with --by, such as --by=time-limit")
    if args.output is not None:
        raise ConfigError("--output writes the curve of --by, which is not given")
    registry = registry_of(args)
    reports = {args.a: Report.load([args.a], registry), args.b: Report.load([args.b], registry)}
    comparison = compare(reports[args.a], reports[args.b])
    for name, path in (("A", args.a), ("B", args.b)):
        say(f"{name}: {path}")
        say_notes(reports[path])
    say()
    say_lines(comparison_lines(comparison))
    return 1 if args.fail_on_regression and comparison.regression() else 0


def _by_budget(args: argparse.Namespace) -> int:
    if args.fail_on_regression:
        raise ConfigError("--fail-on-regression is about two reports, leave out --by")
    if args.output is not None and args.output.suffix.lower() != ".svg":
        raise ConfigError(f"--output must end in .svg, given: {args.output}")
    registry = registry_of(args)
    paths = (args.a, args.b, *args.more)
    reports = {str(path): Report.load([path], registry) for path in paths}
    if len(reports) < len(paths):
        raise ConfigError("a report is given twice")
    for report in reports.values():
        say_notes(report)
    curve = budget_curve(reports, args.by)
    say_lines(budget_lines(curve))
    if args.output is not None:
        for suffix, text in ((".svg", curve.plot.svg()), (".csv", curve.plot.csv())):
            write_text(args.output.with_suffix(suffix), text)
            say(f"wrote {args.output.with_suffix(suffix)}")
    return 0
