"""Grading: read safely, align by id, apply the metric.

A competition's ``grade.py`` has a ``grade(submission, answers, **parameters)`` and may have

- ``check(submission)``, which refuses what the form of a submission alone rules out,
- ``check_against(submission, expected)``, which is given the answers or the public sample,
- ``GRADE_CHECKS = True``, if ``grade`` refuses the same, so that a score needs no check before it,
- ``read_answers(private)``, for answers that are no csv file.

The functions here import what is heavy only when something is graded.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_mlebench.errors import DatasetError, GraderError, InvalidSubmission, MlebenchError

if TYPE_CHECKING:
    import pandas as pd

    from pytest_mlebench.competition import Competition
    from pytest_mlebench.grading.table import CsvTable, Table

# what the content of a file can make of code that is right, such as a number of 4000 digits
CONTENT_ERRORS = (ValueError, ArithmeticError, RecursionError)


def score(competition: Competition, submission: Path, private: Path) -> float:
    """Return the unrounded score of a submission, or raise InvalidSubmission."""
    from pytest_mlebench.grading.freed_memory import release

    answers, path = _read_answers(competition, private), private / competition.answers
    aligned = _aligned(competition, submission, answers, path)
    release(submission.stat().st_size)
    if not getattr(competition.grader, "GRADE_CHECKS", False):
        _check(competition, aligned, answers)
    try:
        value = float(_measure(competition, aligned, answers))
    except Exception as error:
        raise competition.blame(error) from error
    if not math.isfinite(value):
        raise InvalidSubmission(f"the score of this submission is not a finite number ({value})")
    return value


def check(competition: Competition, submission: Path, public: Path) -> None:
    """Raise InvalidSubmission if the form of a submission rules it out; no answers are read."""
    from pytest_mlebench.grading.freed_memory import release

    path = public / competition.sample
    sample = _read_own(competition, path)
    aligned = _aligned(competition, submission, sample, path, is_sample=True)
    release(submission.stat().st_size)
    _check(competition, aligned, sample)


def _check(competition: Competition, aligned: pd.DataFrame, expected: Table) -> None:
    """Apply the competition's own checks."""
    own_check = getattr(competition.grader, "check", None)
    own_comparison = getattr(competition.grader, "check_against", None)
    try:
        if own_check is not None:
            own_check(aligned)
        if own_comparison is not None:  # with the answers or the sample, whatever is at hand
            own_comparison(aligned, _frame(expected))
    except Exception as error:
        raise competition.blame(error) from error


def _aligned(
    competition: Competition,
    submission: Path,
    expected: Table,
    path: Path,
    *,
    is_sample: bool = False,
) -> pd.DataFrame:
    """Read and align a submission; whatever its content brings about is a verdict on it."""
    from pytest_mlebench.grading.align import conform
    from pytest_mlebench.grading.read import read_submission
    from pytest_mlebench.grading.table import row_bound

    rules, with_ids = competition.rules, competition.grader is not None
    try:
        table = read_submission(submission, like=path, rows=row_bound(expected), rules=rules)
        return conform(table, expected, rules, is_sample=is_sample, with_ids=with_ids)
    except MlebenchError:
        raise
    except CONTENT_ERRORS as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InvalidSubmission(f"{submission.name} cannot be read: {reason:.200}") from error
    except Exception as error:
        raise competition.blame(error) from error


def _measure(competition: Competition, submission: pd.DataFrame, answers: Table) -> float:
    parameters = competition.metric.parameters
    if competition.grader is not None:
        value: float = competition.grader.grade(submission, _frame(answers), **parameters)
        return value
    from pytest_mlebench.grading.align import columns, truth
    from pytest_mlebench.grading.metrics import load_metric

    metric = load_metric(competition.metric.name)
    rules = competition.rules
    return metric(truth(answers, rules), columns(submission, rules), **parameters)


def _frame(table: Table) -> pd.DataFrame:
    """Return a table of pandas, in which a grader may look at any column."""
    from pytest_mlebench.grading.table import CsvTable

    return table.frame() if isinstance(table, CsvTable) else table


def _read_answers(competition: Competition, private: Path) -> Table:
    own_reader = getattr(competition.grader, "read_answers", None)
    if own_reader is None:
        answers = _read_own(competition, private / competition.answers)
        if competition.grader is not None:
            answers.load(answers.columns)  # at once, as the grader will ask for all of them
        return answers
    try:
        read: Any = own_reader(private)
    except OSError as error:
        raise DatasetError(f"{competition.id}: cannot read the answers: {error}") from error
    except Exception as error:
        raise GraderError(f"{competition.id}: cannot read the answers: {error}") from error
    return read


def _read_own(competition: Competition, path: Path) -> CsvTable:
    """Read a file of ours: answers or a sample submission."""
    from pytest_mlebench.grading.read import read_own

    if not path.is_file():
        raise DatasetError(f"{competition.id}: {path} is missing, prepare the dataset again")
    return read_own(path, competition.rules)
