"""Show the competitions as a table with totals for each split, or all that is known of some."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_mlebench._units import show_size
from pytest_mlebench.commands.shared import (
    add_competitions_option,
    add_data_dir_option,
    add_split_option,
    registry_of,
    say,
    selected,
    store_folder,
)
from pytest_mlebench.competition import Competition
from pytest_mlebench.medals import thresholds_text
from pytest_mlebench.registry import ALIASES, BENCHMARK
from pytest_mlebench.reports.summary import cut


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("id", nargs="*", metavar="ID", help="only these competitions")
    add_split_option(parser, "only the competitions of these splits")
    parser.add_argument("--json", action="store_true", help="as JSON, with everything")
    add_data_dir_option(parser)
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """List competitions: a table of all, or what is known of some."""
    registry, store = registry_of(args), store_folder(args)
    competitions = registry.load_all(args.id) if args.id else selected(args, registry)
    if args.json:
        say(json.dumps([facts(each) for each in competitions], indent=1, ensure_ascii=False))
    elif args.id:
        for competition in competitions:
            for line in describe(competition):
                say(line)
        say(f"{len(competitions)} competition{'' if len(competitions) == 1 else 's'}")
    else:
        for line in table(competitions, store):
            say(line)
    return 0


def table(competitions: Sequence[Competition], store: Path) -> Iterator[str]:
    """Yield a line for each competition, and the totals of each split."""
    from pytest_mlebench.store.store import Store  # late on purpose: heavy

    kept = Store(store)
    ready = {each.id: kept.find(each) is not None for each in competitions}
    longest = max((len(each.id) for each in competitions), default=0)  # ids are there to be copied
    widths = (max(longest, 11), 6, 20, 6, 20, 6, 8)
    head = ("competition", "split", "category", "size", "metric", "better", "prepared")
    yield _row(head, widths, "issues")
    for each in competitions:
        issues = ", ".join(dict.fromkeys(issue.label for issue in each.known_issues))
        words = (each.id, each.complexity, each.category, _size(each.size_gb), each.metric.name)
        better = "lower" if each.lower_is_better else "higher"
        yield _row((*words, better, "yes" if ready[each.id] else "no"), widths, issues)
    yield ""
    for split in dict.fromkeys(each.complexity for each in competitions):
        yield _total(split, [each for each in competitions if each.complexity == split], ready)
    benchmark = [each for each in competitions if each.complexity in BENCHMARK]
    if {each.complexity for each in benchmark} == set(BENCHMARK):
        yield _total("all", benchmark, ready)
    yield "pytest-mlebench list ID tells all that is known of one"


def _total(split: str, members: Sequence[Competition], ready: Mapping[str, bool]) -> str:
    name = next((alias for alias, own in ALIASES.items() if own == split), split)
    prepared = sum(ready[each.id] for each in members)
    size = _size(sum(each.size_gb or 0 for each in members) or None)
    return f"{name}: {len(members)} competitions, {size}, {prepared} prepared"


def _row(words: Sequence[str], widths: Sequence[int], last: str) -> str:
    cells = (cut(word, width).ljust(width) for word, width in zip(words, widths, strict=True))
    return f"{'  '.join(cells)}  {last}".rstrip()


def _size(size_gb: float | None) -> str:
    return "-" if size_gb is None else show_size(float(f"{size_gb * 1e9:.3g}"))


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
        f"{board.teams or 'unknown'} teams: {thresholds_text(board)}"
        if board.has_medals
        else "no leaderboard, hence no medals",
        *(f"known issue ({issue.label}): {issue.what}" for issue in competition.known_issues),
    ]
    return [competition.id, *(line for detail in details for line in _wrap(detail)), ""]


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, 80, initial_indent="    ", subsequent_indent="      ")
