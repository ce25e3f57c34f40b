"""Medals, thresholds, percentiles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mlebench.medals import Leaderboard, Medal, medal_positions


@pytest.mark.parametrize(
    ("teams", "positions"),
    [
        (1, (1, 1, 1)),
        (9, (1, 1, 3)),
        (50, (5, 10, 20)),
        (99, (9, 19, 39)),
        (100, (10, 20, 40)),
        (249, (10, 49, 99)),
        (250, (10, 50, 100)),
        (999, (11, 50, 100)),
        (1000, (12, 50, 100)),
        (1242, (12, 62, 124)),
        (4000, (18, 200, 400)),
    ],
)
def test_positions_follow_the_number_of_teams(teams: int, positions: tuple[int, int, int]) -> None:
    assert medal_positions(teams) == positions


def board(*, lower: bool) -> Leaderboard:
    return Leaderboard.from_scores([k / 100 for k in range(101)], lower_is_better=lower)


def test_thresholds_are_inclusive_and_the_median_is_not() -> None:
    higher = board(lower=False)
    assert (higher.gold, higher.silver, higher.bronze, higher.median) == (0.91, 0.81, 0.61, 0.5)
    assert higher.medal(0.91) is Medal.GOLD
    assert higher.medal(0.90999) is Medal.SILVER
    assert higher.medal(0.61) is Medal.BRONZE
    assert higher.medal(0.60999) is Medal.NONE
    assert not higher.above_median(0.5)
    assert higher.above_median(0.50001)


def test_lower_may_be_better() -> None:
    lower = board(lower=True)
    assert lower.medal(0.09) is Medal.GOLD
    assert lower.medal(0.4) is Medal.NONE
    assert lower.above_median(0.49999)
    assert not lower.above_median(0.5)


@pytest.mark.parametrize("lower", [True, False])
def test_the_percentile_is_the_share_of_teams_that_are_worse(lower: bool) -> None:
    it = board(lower=lower)  # 101 teams
    best, worst = (0.0, 1.0) if lower else (1.0, 0.0)
    assert it.percentile(-0.01 if lower else 1.01) == 100
    assert it.percentile(best) == round(100 * 100 / 101, 2)
    assert it.percentile(0.5) == round(100 * 50 / 101, 2)
    assert it.percentile(worst) == 0
    assert it.percentile(1.01 if lower else -0.01) == 0


@pytest.mark.parametrize("teams", [1, 2, 7, 100, 101, 240, 1242])
def test_a_lone_winner_is_better_than_all_teams_but_one(teams: int) -> None:
    it = Leaderboard.from_scores(range(teams), lower_is_better=True)
    assert it.percentile(0) == round(100 * (teams - 1) / teams, 2)
    assert it.percentile(-1) == 100


def test_teams_that_tie_with_a_score_are_not_worse() -> None:
    tied = Leaderboard.from_scores([1.0] * 110 + [0.5] * 890, lower_is_better=False)
    assert tied.percentile(1.0) == pytest.approx(89, abs=1)  # the table has 101 entries
    assert tied.percentile(0.5) == 0
    assert tied.percentile(1.1) == 100
    half = Leaderboard.from_scores([1.0] * 50 + [0.0] * 50, lower_is_better=False)
    assert half.percentile(1.0) == 50
    assert half.percentile(0.5) == 50
    assert half.percentile(0.0) == 0


def test_a_score_where_no_team_is_left_above_ties_below() -> None:
    last = Leaderboard.from_scores([3.0] + [9.0] * 99, lower_is_better=True)
    assert last.percentile(3.0) == 99
    assert last.percentile(9.0) == 0


SCORES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=400)


@given(SCORES, st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.booleans())
def test_a_better_score_never_earns_less(
    scores: list[float], one: float, other: float, lower: bool
) -> None:
    it = Leaderboard.from_scores(scores, lower_is_better=lower)
    better, worse = sorted((one, other), reverse=not lower)
    assert it.medal(better) >= it.medal(worse)
    assert it.above_median(better) >= it.above_median(worse)
    assert it.percentile(better) >= it.percentile(worse)


@given(SCORES, st.data(), st.booleans())
def test_the_table_knows_every_share_to_one_percent(
    scores: list[float], data: st.DataObject, lower: bool
) -> None:
    it = Leaderboard.from_scores(scores, lower_is_better=lower)
    score = data.draw(st.sampled_from(scores))
    worse = sum(other > score if lower else other < score for other in scores)
    assert it.percentile(score) == pytest.approx(100 * worse / len(scores), abs=1.01)
    assert it.percentile(score) < 100


def test_medals_compare_by_rank() -> None:
    assert Medal.GOLD > Medal.SILVER > Medal.BRONZE > Medal.NONE
    assert str(Medal.SILVER) == "silver"
