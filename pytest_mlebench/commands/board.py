"""Show the published results of MLE-bench, or the place of a run among them.

RUN is the folder of a run, a report, or grading reports of the reference implementation. A run has
a place in every split that it has whole. Rows whose conditions are not standard are marked; results
with feedback from the test set are shown but have no rank.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pytest_mlebench.commands.shared import (
    add_competitions_option,
    registry_of,
    say,
    say_lines,
    say_notes,
)
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.reports.board import (
    SPLITS,
    board_lines,
    entry_of,
    places,
    ranking,
    read_board,
)
from pytest_mlebench.reports.membership import ALL
from pytest_mlebench.reports.report import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", nargs="*", type=Path, metavar="RUN", help="what to place among them")
    parser.add_argument(
        "--split", choices=SPLITS, help="the split to rank by (default: the widest that RUN has)"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Show the board."""
    entries = read_board()
    report = Report.load(args.run, registry_of(args)) if args.run else None
    own = None if report is None else entry_of(report)
    split = args.split or ALL
    if own is not None:
        split = args.split or next((name for name in reversed(SPLITS) if name in own.rates), None)
        if split not in own.rates:
            raise ConfigError(
                f"{args.run[0]}: has no whole {split or 'split of the benchmark'} to be placed by, "
                f"it has: {', '.join(own.rates) or 'none'}"
            )
    shown = entries if own is None else (*entries, own)
    if args.json:
        rows = [{"rank": rank, **entry.to_dict()} for rank, entry in ranking(shown, split)]
        say(json.dumps({"split": split, "entries": rows}, indent=1, ensure_ascii=False))
        return 0
    say_lines(board_lines(shown, split))
    say()
    if report is not None:
        say_notes(report)
    say(f"ranked by {split}; any-medal rates in percent, mean ± standard error over seeds")
    for place in [] if own is None else places(own, entries):
        say(place.sentence)
    return 0
