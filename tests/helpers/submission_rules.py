"""Rules of a submission, read as those of a competition are."""

from __future__ import annotations

from typing import Any

from pytest_mlebench._toml import Problems, Table
from pytest_mlebench.errors import CompetitionFileError
from pytest_mlebench.grading.rules import Rules


def make_rules(**submission: Any) -> Rules:
    """Return the rules of a ``[submission]`` table, or raise what is wrong with it."""
    problems = Problems("here", CompetitionFileError, collect=True)
    table = Table(submission, "here", problems=problems)
    rules = Rules.from_table(table)
    table.finish()
    return rules
