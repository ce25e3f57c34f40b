"""Show the notebooks that are known of a competition, or fetch them from Kaggle.

They go into the dataset store, where 'audit --notebooks' compares the code of attempts with them.
What was fetched already is not fetched again.
"""

from __future__ import annotations

import argparse

from pytest_mlebench.commands.shared import (
    add_competitions_option,
    add_data_dir_option,
    registry_of,
    say,
    store_folder,
)
from pytest_mlebench.kaggle.kernels import fetch_kernels, fetched_kernels, listed_kernels
from pytest_mlebench.store.progress import on_terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("id", nargs="+", metavar="ID", help="the competitions")
    parser.add_argument("--fetch", action="store_true", help="fetch them from Kaggle")
    add_data_dir_option(parser)
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Show or fetch."""
    registry, store = registry_of(args), store_folder(args)
    problems: list[str] = []
    for competition in [registry.load(name) for name in args.id]:
        names, kept = listed_kernels(competition), store / competition.id
        if args.fetch:
            with on_terminal() as progress:
                _, lost = fetch_kernels(competition, kept, names, progress)
            problems += lost
        there = len(fetched_kernels(kept))
        say(f"{competition.id}: {len(names)} notebooks known, {there} in {kept / 'kernels'}")
        if not args.fetch:
            for name in names:
                say(f"  https://www.kaggle.com/code/{name}")
    for problem in problems:
        say(f"not fetched: {problem}")
    return 0
