"""Show the competitions: title, split, category, size, metric, teams, thresholds, known issues."""

from __future__ import annotations

import argparse
import json
import textwrap
from typing import Any

from pytest_mlebench._units import show_size
from pytest_mlebench.commands.shared import (
    add_competitions_option,
    add_split_option,
    registry_of,
    say,
    selected,
)
from pytest_mlebench.competition import Competition
from pytest_mlebench.medals import thresholds_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("id", nargs="*", metavar="ID", help="only these competitions")
    add_split_option(parser, "only the competitions of these splits")
    parser.add_argument("--json", action="store_true", help="as JSON, with everything")
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """List competitions."""
    registry = registry_of(args)
    competitions = registry.load_all(args.id) if args.id else selected(args, registry)
    if args.json:
        say(json.dumps([facts(each) for each in competitions], indent=1, ensure_ascii=False))
        return 0
    for competition in competitions:
        for line in describe(competition):
            say(line)
    say(f"{len(competitions)} competition{'' if len(competitions) == 1 else 's'}")
    return 0


def facts(competition: Competition) -> dict[str, Any]:
    """Return what is known of a competition in JSON types."""
    board = competition.leaderboard
    return {
        "id": competition.id,
        "title": competition.title,
        "split": competition.complexity,
        "category": competition.category,
        "size_gb": competition.size_gb,
        "metric": competition.metric.name,
        "direction": "lower" if competition.lower_is_better else "higher",
        "teams": board.teams,
        "thresholds": {
            "gold": board.gold,
            "silver": board.silver,
            "bronze": board.bronze,
            "median": board.median,
        },
        "known_issues": [
            {"kind": issue.kind, "certain": issue.certain, "what": issue.what}
            for issue in competition.known_issues
        ],
    }


def describe(competition: Competition) -> list[str]:
    """Return a paragraph on a competition that is readable at 80 columns."""
    board = competition.leaderboard
    size = "" if competition.size_gb is None else f", {show_size(competition.size_gb * 1e9)}"
    direction = "lower" if competition.lower_is_better else "higher"
    details = [
        competition.title,
        f"{competition.complexity}, {competition.category}{size}",
        f"{competition.metric.name}, {direction} is better",
        f"{board.teams} teams: {thresholds_text(board)}",
        *(f"known issue ({issue.label}): {issue.what}" for issue in competition.known_issues),
    ]
    return [competition.id, *(line for detail in details for line in _wrap(detail)), ""]


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, 80, initial_indent="    ", subsequent_indent="      ")
