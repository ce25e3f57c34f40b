"""What a grader does to an aligned submission happens to nothing else."""

from __future__ import annotations

import pandas as pd
import pytest

from pytest_mlebench.grading.align import conform
from pytest_mlebench.grading.rules import Rules


@pytest.mark.parametrize("kind", ["number", "integer", "any"])
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]], ids=["in order", "shuffled"])
def test_a_grader_may_work_in_place(kind: str, order: list[int]) -> None:
    rules = Rules(id=("id",), targets=("y",), kinds={"y": kind})
    answers = pd.DataFrame({"id": [1, 2, 3], "y": [10, 20, 30]})
    submission = answers.iloc[order].reset_index(drop=True)
    before = answers.copy(), submission.copy()
    aligned = conform(submission, answers, rules)
    aligned.loc[0, "id"] = 99
    aligned.loc[0, "y"] = 99
    aligned["id"] += 10
    aligned["y"] += 10
    assert aligned["id"].tolist() == [109, 12, 13]
    assert aligned["y"].tolist() == [109, 30, 40]
    pd.testing.assert_frame_equal(answers, before[0])
    pd.testing.assert_frame_equal(submission, before[1])
