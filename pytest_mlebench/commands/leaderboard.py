"""Show the leaderboard that medals are awarded by, or fetch the full one.

Every competition comes with the thresholds and 101 points of its private leaderboard. With --fetch
or --meta-kaggle the store gets the score of every team, and medals and percentiles come from it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_mlebench.commands.shared import (
    add_competitions_option,
    add_data_dir_option,
    registry_of,
    say,
    store_folder,
)
from pytest_mlebench.kaggle.leaderboards import (
    FILE,
    fetch_leaderboard,
    import_leaderboard,
    leaderboard_of,
)
from pytest_mlebench.medals import thresholds_text
from pytest_mlebench.store.progress import on_terminal
from pytest_mlebench.store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("id", nargs="+", metavar="ID", help="the competitions")
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--fetch", action="store_true", help="fetch the full private leaderboard from Kaggle"
    )
    source.add_argument(
        "--meta-kaggle",
        metavar="DIR",
        type=Path,
        help="take it from a Meta Kaggle folder (Teams.csv, Submissions.csv, Competitions.csv)",
    )
    add_data_dir_option(parser)
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Fetch leaderboards if asked to, and show them."""
    registry = registry_of(args)
    store = Store(store_folder(args))
    for competition in [registry.load(name) for name in args.id]:
        kept = store.folder(competition)
        with on_terminal() as progress:
            if args.fetch:
                fetch_leaderboard(competition, kept, progress)
            elif args.meta_kaggle is not None:
                import_leaderboard(competition, kept, args.meta_kaggle, progress)
        board = leaderboard_of(competition, kept)
        full = (kept / FILE).is_file()
        say(
            f"{competition.id}: {board.teams} teams, {thresholds_text(board)} "
            f"({'full leaderboard' if full else '101 points'})"
        )
    return 0
