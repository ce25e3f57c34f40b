"""Medals, thresholds, percentiles."""

from __future__ import annotations

import pytest

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
def test_the_percentile_is_the_share_of_teams_left_behind(lower: bool) -> None:
    it = board(lower=lower)
    best, worst = (0.0, 1.0) if lower else (1.0, 0.0)
    assert it.percentile(best) == 100
    assert it.percentile(worst) == 0
    assert it.percentile(0.5) == 50
    assert it.percentile(0.255) == pytest.approx(74.5 if lower else 25.5)
    assert it.percentile(-5 if lower else 5) == 100


def test_equal_scores_share_the_better_half() -> None:
    flat = Leaderboard.from_scores([1.0] * 50 + [0.0] * 50, lower_is_better=False)
    assert flat.percentile(1.0) == 100
    assert flat.percentile(0.5) < 60


def test_medals_compare_by_rank() -> None:
    assert Medal.GOLD > Medal.SILVER > Medal.BRONZE > Medal.NONE
    assert str(Medal.SILVER) == "silver"
