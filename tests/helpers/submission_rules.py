"""Rules of a submission, read as those of a competition are."""

from __future__ import annotations

from typing import Any

from pytest_mlebench._toml import Table, TableProblems
from pytest_mlebench.errors import CompetitionFileError
from pytest_mlebench.grading.rules import Rules

QUIRKS = (
    *("booleans", "true", "only_booleans", "varied", "same_names", "rows"),
    *("as_written", "other_names", "kinds"),
)


def make_rules(**submission: Any) -> Rules:
    """Return the rules of a ``[submission]`` table, or raise what is wrong with it.

    Quirks are given as the others are.
    """
    quirks = {key: submission.pop(key) for key in QUIRKS if key in submission}
    submission |= {"quirks": quirks} if quirks else {}
    problems = TableProblems("here", CompetitionFileError, collect=True)
    table = Table(submission, "here", problems=problems)
    rules = Rules.from_table(table)
    table.finish()
    return rules
