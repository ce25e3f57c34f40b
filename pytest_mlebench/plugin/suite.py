"""The built-in suite: one test, an item of it for each competition and seed."""

from __future__ import annotations

import pytest

from pytest_mlebench.grade import Grade

NODE = "mlebench"  # how the suite is called on the command line and in node ids


@pytest.mark.mle
def test_competition(mle_grade: Grade) -> None:
    """Pass if the grade is good enough; the plugin has compared it with --mle-require."""
    if not mle_grade.valid:
        pytest.fail("\n".join(mle_grade.explain()), pytrace=False)
