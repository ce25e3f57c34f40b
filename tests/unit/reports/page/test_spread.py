"""The human scores as an area, an agent's as dots."""

from __future__ import annotations

import pytest

from pytest_mlebench.medals import Leaderboard, Medal
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.page.spread import MARGIN, WIDTH, Scored, draw_spread


def board(*, lower_is_better: bool = False) -> Leaderboard:
    scores = [k / 1000 for k in range(1001)]
    return Leaderboard.from_scores(scores, lower_is_better=lower_is_better)


def scored(score: float, medal: Medal = Medal.NONE) -> Scored:
    return Scored(score, medal, f"seed: {score}", "a")


@pytest.mark.parametrize("lower_is_better", [False, True])
def test_better_is_further_right_whatever_the_direction(lower_is_better: bool) -> None:
    scores = [0.5, 0.6, 0.9]
    drawn = draw_spread(board(lower_is_better=lower_is_better), [*map(scored, scores)])
    assert drawn is not None
    places = [dot.x for dot in drawn.dots]
    assert places == sorted(places, reverse=lower_is_better)
    lines = [x for _, x in drawn.lines]
    assert lines == sorted(lines)
    assert [name for name, _ in drawn.lines] == ["median", "bronze", "silver", "gold"]


def test_scores_outside_are_drawn_at_the_edge() -> None:
    drawn = draw_spread(board(), [scored(-1e9), scored(7.0)])
    assert drawn is not None
    assert [dot.x for dot in drawn.dots] == [MARGIN, WIDTH - MARGIN]


def test_equal_scores_are_piled_up() -> None:
    drawn = draw_spread(board(), [scored(0.9)] * 3)
    assert drawn is not None
    assert len({(dot.x, dot.y) for dot in drawn.dots}) == 3


def test_a_board_on_which_all_are_equal_is_not_drawn() -> None:
    same = Leaderboard(100, False, 1, 1, 1, 1, (1.0,) * 101)
    assert draw_spread(same, [scored(1)]) is None


def test_every_competition_of_the_benchmark_can_be_drawn() -> None:
    registry = Registry()
    for name in registry.split("all"):
        leaderboard = registry.load(name).leaderboard
        drawn = draw_spread(leaderboard, [scored(leaderboard.median)])
        assert drawn is not None, name
        assert MARGIN <= drawn.dots[0].x <= WIDTH - MARGIN
