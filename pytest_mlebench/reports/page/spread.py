"""How the human teams scored, as an area; medal thresholds as lines, an agent's seeds as dots.

The better a score, the further right it is. The worst teams' scores are often absurd (a log loss of
35), so the drawing leaves out the worst quarter, unless the agent itself is there; what is outside
is drawn at the edge.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_mlebench.medals import Leaderboard, Medal

WIDTH, HEIGHT, MARGIN = 260, 40, 6
BINS = 40
BASE = 25  # y of the area's foot; the dots are below
FIRST_SHOWN, LAST_SHOWN = 75, 95  # places in the ranking, in percent, where the drawing may begin
DOT = 7  # columns that a dot keeps free of others
LEVELS = 4  # of a pile of dots; those above are drawn over each other


@dataclass(frozen=True)
class Dot:
    """A seed's score."""

    x: float
    y: float
    medal: str
    label: str
    anchor: str


@dataclass(frozen=True)
class Spread:
    """The drawing, in coordinates."""

    area: str
    lines: tuple[tuple[str, float], ...]  # medal or median, x
    dots: tuple[Dot, ...]


@dataclass(frozen=True)
class Scored:
    """A score that is to be drawn."""

    score: float
    medal: Medal
    label: str
    anchor: str


@dataclass(frozen=True)
class _Scale:
    """From scores to columns."""

    worst: float
    best: float

    def x(self, score: float) -> float:
        where = (score - self.worst) / (self.best - self.worst)
        return round(MARGIN + (WIDTH - 2 * MARGIN) * min(1.0, max(0.0, where)), 1)


def draw_spread(board: Leaderboard, scored: Sequence[Scored]) -> Spread | None:
    """Return the drawing, or None where the teams' scores do not differ or are not known."""
    scale = _scale(board, [one.score for one in scored])
    if scale is None:
        return None
    marks = (("median", board.median), ("bronze", board.bronze), ("silver", board.silver))
    named = (*marks, ("gold", board.gold))
    return Spread(
        area=_area(board.percentiles, scale),
        lines=tuple((name, scale.x(score)) for name, score in named if score is not None),
        dots=tuple(_dots(scored, scale)),
    )


def _scale(board: Leaderboard, scores: Sequence[float]) -> _Scale | None:
    ranked = board.percentiles
    if len(ranked) <= LAST_SHOWN:
        return None
    worse = max if board.lower_is_better else min
    lowest = worse((*scores, ranked[FIRST_SHOWN]))
    far = lowest != worse(lowest, ranked[LAST_SHOWN])
    worst, best = lowest if far else ranked[LAST_SHOWN], ranked[0]
    usual = abs(ranked[1] - worst)
    if abs(best - ranked[1]) > usual / 2 and board.gold is not None:
        best = board.gold  # the first team is far ahead: a leak, more often than not
    return None if best == worst else _Scale(worst, best)


def _area(ranked: Sequence[float], scale: _Scale) -> str:
    """Return the outline of the share of teams by score; its square root, to show the flanks."""
    weights = [0.0] * BINS
    step = (WIDTH - 2 * MARGIN) / BINS
    for one, other in itertools.pairwise(ranked):
        low, high = sorted((scale.x(one) - MARGIN, scale.x(other) - MARGIN))
        if high == 0:  # worse than the drawing shows
            continue
        first, last = (min(BINS - 1, int(end / step)) for end in (low, high))
        for place in range(first, last + 1):
            weights[place] += 1 / (last - first + 1)
    smooth = [
        (weights[max(0, k - 1)] + 2 * weights[k] + weights[min(BINS - 1, k + 1)]) / 4
        for k in range(BINS)
    ]
    top = max(smooth) or 1.0
    heights = ((smooth[k] / top) ** 0.5 for k in range(BINS))
    points = [f"{MARGIN + (k + 0.5) * step:.0f},{BASE - 22 * h:.1f}" for k, h in enumerate(heights)]
    return " ".join((f"{MARGIN},{BASE}", *points, f"{WIDTH - MARGIN},{BASE}"))


def _dots(scored: Iterable[Scored], scale: _Scale) -> Iterable[Dot]:
    taken: list[tuple[float, int]] = []  # x, level
    for one in scored:
        x = scale.x(one.score)
        levels = {level for other, level in taken if abs(other - x) < DOT}
        level = next((place for place in range(LEVELS) if place not in levels), LEVELS)
        if level < LEVELS:
            taken.append((x, level))
        y = BASE + 7 - level * 6  # a pile of equal scores grows into the area
        yield Dot(x, y, str(one.medal), one.label, one.anchor)
