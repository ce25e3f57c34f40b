"""Check the form of one submission without its answers; the exit status is 1 if it is wrong.

Columns, ids, types and ranges are compared with the public sample submission, and no score is
given: what an agent may ask as often as it likes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_mlebench.attempts.grading_process import check_apart
from pytest_mlebench.commands.shared import (
    add_submission_arguments,
    dataset_of,
    registry_of,
    say,
    store_folder,
    submission_of,
)
from pytest_mlebench.errors import ConfigError, InvalidSubmission


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_submission_arguments(parser)
    parser.add_argument(
        "--public",
        metavar="DIR",
        type=Path,
        help="the folder of the public data, where the dataset store is not at hand",
    )


def run(args: argparse.Namespace) -> int:
    """Check a file."""
    submission = submission_of(args)
    registry = registry_of(args)
    competition = registry.load(args.id)
    public = args.public
    if public is None:
        public = dataset_of(args.id, registry, store_folder(args)).public
    elif not (public / competition.sample).is_file():
        raise ConfigError(f"--public has no sample submission {competition.sample}: {public}")
    try:
        check_apart(competition, submission, public)
    except InvalidSubmission as problem:
        say(f"invalid: {problem}")
        return 1
    say(f"{submission} is a valid submission by its form; its score is not known")
    return 0
