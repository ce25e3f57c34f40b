"""Grade one submission and explain the grade; the exit status is 1 if it is not valid."""

from __future__ import annotations

import argparse
import json

from pytest_mlebench.attempts.grading_process import score_apart
from pytest_mlebench.commands.shared import (
    add_submission_arguments,
    dataset_of,
    registry_of,
    say,
    store_folder,
    submission_of,
)
from pytest_mlebench.grade import grade_submission


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_submission_arguments(parser)
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    """Grade a file."""
    submission = submission_of(args)
    dataset = dataset_of(args.id, registry_of(args), store_folder(args))
    grade = grade_submission(dataset.competition, submission, dataset.private, score=score_apart)
    if args.json:
        say(json.dumps(grade.to_dict(), indent=1, ensure_ascii=False))
    else:
        for line in grade.explain():
            say(line)
    return 0 if grade.valid else 1
