"""Write a competition as the task description in YAML that repository agents read.

It has the repository, the description, where the input data are, what is to be written, and
parameters: the metric, its direction, the time. Answers are no part of it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pytest_mlebench._files import write_text
from pytest_mlebench.commands.shared import (
    add_competitions_option,
    add_data_dir_option,
    registry_of,
    say,
    store_folder,
)
from pytest_mlebench.competition import Competition
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.host.demo_limits import demo_limits
from pytest_mlebench.limits import STANDARD


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("id", metavar="ID", help="the competition")
    parser.add_argument(
        "--repository",
        metavar="PATH|URL",
        default=".",
        help="the repository that the agent is to work in (default: %(default)s)",
    )
    parser.add_argument("-o", "--output", metavar="FILE.yaml", type=Path, help="where to write it")
    add_data_dir_option(parser)
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Write the task."""
    import yaml  # late on purpose: only here

    competition = registry_of(args).load(args.id)
    text = yaml.safe_dump(
        task(competition, args.repository, store_folder(args)),
        sort_keys=False,
        allow_unicode=True,
        width=100,
    )
    if args.output is None:
        say(text.rstrip())
        return 0
    try:
        write_text(args.output, text)
    except OSError as error:
        raise ConfigError(f"cannot write to --output {args.output}: {error.strerror}") from None
    say(f"wrote {args.output}")
    return 0


def task(competition: Competition, repository: str, store: Path) -> dict[str, Any]:
    """Return a competition as plain data."""
    limits = demo_limits() if competition.complexity in ("demo", "custom") else STANDARD
    rules = competition.rules
    return {
        "name": competition.id,
        "repository": repository,
        "task_description": competition.description,
        "input_data": {
            "path": str(store / competition.id / "prepared" / "public"),
            "prepare": f"pytest-mlebench prepare {competition.id}",
            "description": "description.md",
            "sample_submission": competition.sample,
        },
        "output": {
            "path": "submission.csv",
            "columns": [*rules.id, *rules.targets],
            "check": f"pytest-mlebench validate submission.csv {competition.id}",
        },
        "parameters": {
            "metric": competition.metric.name,
            "direction": "lower" if competition.lower_is_better else "higher",
            **{f"metric_{key}": value for key, value in competition.metric.parameters.items()},
            "category": competition.category,
            "time_limit_seconds": int(limits.time_seconds),
        },
    }
