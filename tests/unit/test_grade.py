"""A grade: rounded first, then placed; what it reaches, and how it explains itself."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlebench.grade import REQUIREMENTS, Grade, no_submission
from pytest_mlebench.medals import Leaderboard, Medal
from pytest_mlebench.registry import load_competition

HIGHER = Leaderboard(
    teams=1000,
    lower_is_better=False,
    gold=0.9,
    silver=0.8,
    bronze=0.7,
    median=0.5,
    percentiles=tuple(1 - percent / 100 for percent in range(101)),
)
LOWER = dataclasses.replace(
    HIGHER,
    lower_is_better=True,
    gold=0.1,
    silver=0.2,
    bronze=0.3,
    median=0.5,
    percentiles=tuple(percent / 100 for percent in range(101)),
)


@pytest.mark.parametrize(
    ("board", "score", "medal"),
    [
        (HIGHER, 0.899996, Medal.GOLD),  # rounded: 0.9
        (HIGHER, 0.899994, Medal.SILVER),  # rounded: 0.89999
        (HIGHER, 0.7 - 4e-6, Medal.BRONZE),
        (HIGHER, 0.7 - 6e-6, Medal.NONE),
        (LOWER, 0.100004, Medal.GOLD),
        (LOWER, 0.100006, Medal.SILVER),
        (LOWER, 0.300004, Medal.BRONZE),
        (LOWER, 0.300006, Medal.NONE),
    ],
)
def test_the_medal_is_decided_on_the_score_rounded_to_five_decimals(
    board: Leaderboard, score: float, medal: Medal
) -> None:
    grade = Grade.of("x", board, score)
    assert grade.medal is medal
    assert grade.score == round(score, 5)


def test_the_median_is_decided_on_the_rounded_score_too() -> None:
    assert not Grade.of("x", HIGHER, 0.500004).above_median
    assert Grade.of("x", HIGHER, 0.500006).above_median


@pytest.mark.parametrize("board", [HIGHER, LOWER])
@pytest.mark.parametrize(
    ("requirement", "at_the_bar"),
    [("pass", True), ("median", False), ("bronze", True), ("silver", True), ("gold", True)],
)
def test_a_score_at_exactly_the_bar(board: Leaderboard, requirement: str, at_the_bar: bool) -> None:
    """Medals are inclusive, the median is not; one step beyond decides otherwise."""
    bar = {"pass": 0.0 if board is HIGHER else 1.0}.get(requirement) or getattr(
        board, requirement, 0.0
    )
    step = -1e-5 if board is LOWER else 1e-5
    assert Grade.of("x", board, bar).reaches(requirement) is at_the_bar
    assert Grade.of("x", board, bar + step).reaches(requirement)
    assert Grade.of("x", board, bar - step).reaches(requirement) is (requirement == "pass")


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_no_score_reaches_nothing(requirement: str) -> None:
    grade = no_submission(load_competition("demo-digits"), "there is no submission.csv")
    assert not grade.reaches(requirement)
    assert not grade.submission_exists


def test_a_leaderboard_without_teams_gives_no_percentile() -> None:
    unknown = dataclasses.replace(HIGHER, teams=0, percentiles=())
    grade = Grade.of("x", unknown, 0.95)
    assert (grade.medal, grade.percentile) == (Medal.GOLD, None)
    assert "the place among the teams is not known" in repr(grade)


def test_a_grade_shows_itself_in_one_line() -> None:
    grade = Grade.of("spooky", LOWER, 0.25, run="mle-runs/one/spooky-seed0")
    assert repr(grade) == (
        "<Grade of spooky: score 0.25 (lower is better), bronze; gold 0.1, silver 0.2, "
        "bronze 0.3, median 0.5; better than 74.9 % of 1000 teams; run: mle-runs/one/spooky-seed0>"
    )
    nothing = Grade.of("spooky", LOWER, None, problem="submission.csv is a folder")
    assert repr(nothing) == "<Grade of spooky: submission.csv is a folder>"


def test_a_failed_assertion_explains_itself(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from pytest_mlebench import Grade, load_competition

        def test_it():
            board = load_competition("spooky-author-identification").leaderboard
            grade = Grade.of("spooky-author-identification", board, 0.45, run="mle-runs/r/a-seed0")
            assert grade.above_median
        """
    )
    result = pytester.runpytest_subprocess()
    result.stdout.fnmatch_lines(
        "*where False = <Grade of spooky-author-identification: score 0.45 (lower is better), "
        "no medal; gold 0.16506, silver 0.26996, bronze 0.29381, median 0.418785; "
        "better than * % of 1242 teams; run: mle-runs/r/a-seed0>.above_median"
    )


@given(st.floats(allow_nan=False, allow_infinity=False, width=32) | st.none(), st.booleans())
def test_a_grade_comes_back_from_its_record(score: float | None, exists: bool) -> None:
    problem = "not valid" if score is None else None
    grade = Grade.of("x", LOWER, score, problem=problem, submission_exists=exists, run="r")
    assert Grade.from_dict(json.loads(json.dumps(grade.to_dict()))) == grade


@given(st.floats(-1, 2), st.floats(-1, 2), st.sampled_from([LOWER, HIGHER]))
def test_a_better_score_reaches_whatever_a_worse_one_does(
    one: float, other: float, board: Leaderboard
) -> None:
    better, worse = sorted((one, other), reverse=not board.lower_is_better)
    high, low = Grade.of("x", board, better), Grade.of("x", board, worse)
    assert high.medal >= low.medal
    assert (high.percentile or 0) >= (low.percentile or 0)
    for requirement in REQUIREMENTS:
        assert high.reaches(requirement) >= low.reaches(requirement)
