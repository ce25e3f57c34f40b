"""Compare two reports or runs: the rates of A and B on the competitions that both have.

A and B are each the folder of a run, a report, a grading report of the reference implementation,
or a folder of such (its seeds). The p-value is that of an exact permutation test: the runs of each
competition are permuted between A and B in every way there is.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_mlebench.commands.shared import add_competitions_option, registry_of, say, say_lines
from pytest_mlebench.reports.compare import compare, comparison_lines
from pytest_mlebench.reports.report import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("a", type=Path, metavar="A", help="the earlier report or run")
    parser.add_argument("b", type=Path, metavar="B", help="the later report or run")
    parser.add_argument(
        "--fail-on-regression",
        action="store_true",
        help="exit with status 1 when the any-medal rate of B is significantly lower",
    )
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Compare."""
    registry = registry_of(args)
    comparison = compare(Report.load([args.a], registry), Report.load([args.b], registry))
    say(f"A: {args.a}")
    say(f"B: {args.b}")
    say()
    say_lines(comparison_lines(comparison))
    return 1 if args.fail_on_regression and comparison.regression() else 0
