"""Grade the submissions of a run again, without running any agent.

For a run that was graded with another leaderboard or an older version. Each record keeps its
attempt and gets the new grade; the run's report.json is written anew.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from pytest_mlebench.attempts.grade_attempt import grade_again
from pytest_mlebench.attempts.record import Run
from pytest_mlebench.attempts.run_results import latest_attempts
from pytest_mlebench.commands.shared import (
    add_competitions_option,
    add_data_dir_option,
    registry_of,
    say,
    store_folder,
)
from pytest_mlebench.dataset import Dataset
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.kaggle.leaderboards import with_leaderboard
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.report import Report
from pytest_mlebench.store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a run")
    add_data_dir_option(parser)
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Grade what is over, and say what changed."""
    registry = registry_of(args)
    Report.from_run(args.run, registry)  # what is not a run ends here, with a sentence
    changed = 0
    folder = RunFolder(args.run)
    for attempt in latest_attempts(folder):
        if attempt.is_over:
            changed += _regrade(attempt, _dataset(attempt, registry, args))
    Report.from_run(args.run, registry).write(folder.report)
    say(f"{changed} grades changed, {folder.report} is written anew")
    return 0


def _dataset(attempt: Run, registry: Registry, args: argparse.Namespace) -> Dataset:
    competition, store = registry.load(attempt.competition), Store(store_folder(args))
    found = store.find(competition)
    if found is None:
        raise ConfigError(
            f"{competition.id}: not prepared in {store.root}: run pytest-mlebench prepare "
            f"{competition.id}, or name another store with --data-dir"
        )
    return replace(found, competition=with_leaderboard(competition, store.folder(competition)))


def _regrade(attempt: Run, dataset: Dataset) -> bool:
    before, after = attempt.grade, grade_again(attempt, dataset)
    if before == after:
        return False
    old = "not graded" if before is None else before.score
    say(f"{attempt.competition} seed{attempt.seed}: {old} -> {after.score}, {after.medal}")
    return True
