"""Grading: read safely, align by id, apply the metric.

The functions here import what is heavy only when something is graded.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_mlebench.errors import DatasetError, GraderError, InvalidSubmission

if TYPE_CHECKING:
    import pandas as pd

    from pytest_mlebench.competition import Competition


def score(competition: Competition, submission: Path, private: Path) -> float:
    """Return the unrounded score of a submission, or raise InvalidSubmission."""
    answers = _read_answers(competition, private)
    aligned = _conform(competition, submission, answers, private / competition.answers)
    try:
        value = float(_measure(competition, aligned, answers))
    except Exception as error:
        raise competition.blame(error) from error
    if not math.isfinite(value):
        raise InvalidSubmission(f"the score of this submission is not a finite number ({value})")
    return value


def check(competition: Competition, submission: Path, public: Path) -> None:
    """Raise InvalidSubmission if the form of a submission rules it out; no answers are read."""
    path = public / competition.sample
    sample = _read_own(competition, path)
    _conform(competition, submission, sample, path, is_sample=True)


def _conform(
    competition: Competition,
    submission: Path,
    expected: pd.DataFrame,
    path: Path,
    *,
    is_sample: bool = False,
) -> pd.DataFrame:
    from pytest_mlebench.grading.align import conform
    from pytest_mlebench.grading.read import read_submission

    frame = read_submission(submission, like=path, rules=competition.rules)
    aligned = conform(frame, expected, competition.rules, is_sample=is_sample)
    own_check = getattr(competition.grader, "check", None)
    own_comparison = getattr(competition.grader, "check_against", None)
    try:
        if own_check is not None:
            own_check(aligned)
        if own_comparison is not None:  # with the answers or the sample, whatever is at hand
            own_comparison(aligned, expected)
    except Exception as error:
        raise competition.blame(error) from error
    return aligned


def _measure(competition: Competition, submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    parameters = competition.metric.parameters
    if competition.grader is not None:
        value: float = competition.grader.grade(submission, answers, **parameters)
        return value
    from pytest_mlebench.grading.align import columns, truth
    from pytest_mlebench.grading.metrics import load_metric

    metric = load_metric(competition.metric.name)
    rules = competition.rules
    return metric(truth(answers, rules), columns(submission, rules), **parameters)


def _read_answers(competition: Competition, private: Path) -> pd.DataFrame:
    own_reader = getattr(competition.grader, "read_answers", None)
    if own_reader is None:
        return _read_own(competition, private / competition.answers)
    try:
        answers: Any = own_reader(private)
    except OSError as error:
        raise DatasetError(f"{competition.id}: cannot read the answers: {error}") from error
    except Exception as error:
        raise GraderError(f"{competition.id}: cannot read the answers: {error}") from error
    return answers


def _read_own(competition: Competition, path: Path) -> pd.DataFrame:
    """Read a file of ours: answers or a sample submission."""
    from pytest_mlebench.grading.read import read_own

    if not path.is_file():
        raise DatasetError(f"{competition.id}: {path} is missing, prepare the dataset again")
    rules = competition.rules
    if competition.grader is not None:  # it may look at any column
        return read_own(path, rules)
    return read_own(path, rules, only={*rules.id, *rules.targets, *rules.answers})
