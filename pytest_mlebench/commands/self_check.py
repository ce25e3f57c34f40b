"""Grade, for every prepared dataset, the best submission there is and the sample submission.

The best one must earn gold and be beaten by nothing; the sample must have a score. The exit status
is 1 if one of them does not.
"""

from __future__ import annotations

import argparse

from pytest_mlebench._plain_text import one_line
from pytest_mlebench.commands.shared import (
    add_competitions_option,
    add_data_dir_option,
    add_split_option,
    registry_of,
    say,
    selected,
    store_folder,
)
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.grading.self_check import SelfCheck, check_dataset
from pytest_mlebench.reports.summary import cut
from pytest_mlebench.store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_split_option(parser, "only the competitions of these splits")
    add_data_dir_option(parser)
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Check the datasets."""
    root = store_folder(args)
    store = Store(root)
    competitions = selected(args, registry_of(args))
    datasets = [found for each in competitions if (found := store.find(each))]
    if not datasets:
        raise ConfigError(
            f"none of {len(competitions)} competitions is prepared in {root}: "
            "run pytest-mlebench prepare, or name another store with --data-dir"
        )
    say(f"{'competition':<46}{'sample':>13}{'best':>13}")
    bad = 0
    for dataset in datasets:
        verdict = check_dataset(dataset)
        bad += bool(verdict.problems)
        _show(verdict)
    absent = len(competitions) - len(datasets)
    say(f"{len(datasets)} datasets checked, {bad} with a problem, {absent} not prepared")
    return 1 if bad else 0


def _show(verdict: SelfCheck) -> None:
    status = "FAILED" if verdict.problems else "ok"
    scores = "".join(f"{_number(score):>13}" for score in (verdict.sample, verdict.gold))
    say(f"{cut(verdict.competition, 45):<46}{scores}  {status}")
    for text in (*verdict.problems, *verdict.notes):
        say(f"    {one_line(text)}")


def _number(score: float | None) -> str:
    return "-" if score is None else f"{score:.10g}"
