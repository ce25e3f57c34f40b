"""Write what a pull request to a leaderboard consists of.

One grading report per seed in the reference implementation's format (runs/NAME_1 and so on), the
lines of run_group_experiments.csv, the row of the table and a disclosure page. What is not fit to
be published is refused with the list of what is missing; --incomplete writes it with that list.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_mlebench.audit.publish import publication, refusal, write_publication
from pytest_mlebench.commands.shared import add_competitions_option, registry_of, say
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.reports.report import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", nargs="+", type=Path, metavar="RUN", help="a run, or its reports")
    parser.add_argument("--group", required=True, metavar="NAME", help="the name of the run group")
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="DIR", help="a new or empty folder"
    )
    parser.add_argument(
        "--incomplete", action="store_true", help="write it with the list of what is missing"
    )
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Publish."""
    report = Report.load(args.run, registry_of(args))
    found = publication(report, args.group)
    if found.missing and not args.incomplete:
        raise ConfigError(refusal(found))
    for path in write_publication(found, args.output):
        say(f"wrote {path}")
    for problem in found.missing:
        say(f"missing: {problem}")
    return 0
