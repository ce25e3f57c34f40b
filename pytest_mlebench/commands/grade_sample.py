"""Grade one submission and explain the grade; the exit status is 1 if it is not valid."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pytest_mlebench.attempts.grading_process import score_apart
from pytest_mlebench.commands.shared import (
    add_competitions_option,
    add_data_dir_option,
    dataset_of,
    registry_of,
    say,
    store_folder,
)
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.grade import grade_submission


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("csv", type=Path, metavar="CSV", help="the submission")
    parser.add_argument("id", metavar="ID", help="the competition")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_data_dir_option(parser)
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Grade a file."""
    if not args.csv.exists():
        raise ConfigError(f"no such submission: {args.csv}")
    dataset = dataset_of(args.id, registry_of(args), store_folder(args))
    grade = grade_submission(dataset.competition, args.csv, dataset.private, score=score_apart)
    if args.json:
        say(json.dumps(grade.to_dict(), indent=1, ensure_ascii=False))
    else:
        for line in grade.explain():
            say(line)
    return 0 if grade.valid else 1
