"""Medals, and the leaderboard that awards them."""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from pytest_mlebench._units import show_score

THRESHOLDS = ("gold", "silver", "bronze", "median")
DECIMALS = 5  # a score is rounded before it is placed on a leaderboard


class Medal(IntEnum):
    """What a score earns; medals compare by rank (``medal >= Medal.BRONZE``)."""

    NONE = 0
    BRONZE = 1
    SILVER = 2
    GOLD = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Leaderboard:
    """The human scores of one competition: thresholds and 101 percentiles, best score first.

    A competition of one's own may have thresholds alone, or nothing: then a score earns no medal.
    """

    teams: int  # 0 where it is not known
    lower_is_better: bool  # which of two scores is the better one
    gold: float | None  # the score that just earns gold; None: there are no medals
    silver: float | None  # the same for silver
    bronze: float | None  # the same for bronze
    median: float | None  # the median team's score
    percentiles: tuple[float, ...]  # 101 scores, or none

    @classmethod
    def nothing(cls, *, lower_is_better: bool) -> Leaderboard:
        """Return the leaderboard of a competition in which nobody has competed."""
        return cls(0, lower_is_better, None, None, None, None, ())

    @property
    def has_medals(self) -> bool:
        """Tell whether a score can earn a medal."""
        return self.bronze is not None

    @classmethod
    def from_scores(cls, scores: Sequence[float], *, lower_is_better: bool) -> Leaderboard:
        """Apply the medal rule to the scores of all teams, in any order."""
        ranked = sorted(scores, reverse=not lower_is_better)
        gold, silver, bronze = medal_positions(len(ranked))
        return cls(
            teams=len(ranked),
            lower_is_better=lower_is_better,
            gold=ranked[gold - 1],
            silver=ranked[silver - 1],
            bronze=ranked[bronze - 1],
            median=statistics.median(ranked),
            percentiles=tuple(ranked[_place(len(ranked), percent)] for percent in range(101)),
        )

    def threshold(self, medal: Medal) -> float | None:
        """Return the score that just earns *medal*, if any does."""
        return {Medal.GOLD: self.gold, Medal.SILVER: self.silver, Medal.BRONZE: self.bronze}[medal]

    def medal(self, score: float) -> Medal:
        """Return the best medal whose threshold *score* reaches (thresholds are inclusive)."""
        for medal in (Medal.GOLD, Medal.SILVER, Medal.BRONZE):
            threshold = self.threshold(medal)
            if threshold is None:
                continue
            if score <= threshold if self.lower_is_better else score >= threshold:
                return medal
        return Medal.NONE

    def above_median(self, score: float) -> bool:
        """Tell whether *score* is strictly better than the median team's."""
        if self.median is None:
            return False
        return score < self.median if self.lower_is_better else score > self.median

    def percentile(self, score: float) -> float:
        """Return the percentage of teams whose score is strictly worse than *score*."""
        ranked = self.percentiles if self.lower_is_better else [-v for v in self.percentiles]
        value = score if self.lower_is_better else -score
        known = bisect.bisect_right(ranked, value)  # so many entries of the table are not worse
        if not known:
            return 100.0
        not_worse: float = _place(self.teams, known - 1) + 1
        if known < len(ranked):  # between two entries the teams are taken to be spread evenly
            low, high = ranked[known - 1], ranked[known]
            between = max(0, _place(self.teams, known) - not_worse)
            not_worse += between * (value - low) / (high - low)
        return round(100 * (self.teams - not_worse) / self.teams, 2)


def thresholds_text(figures: object) -> str:
    """Return the thresholds that a leaderboard or a grade has, for people."""
    values = {name: getattr(figures, name) for name in THRESHOLDS}
    known = [f"{name} {show_score(value)}" for name, value in values.items() if value is not None]
    return ", ".join(known) or "none"


def medal_positions(teams: int) -> tuple[int, int, int]:
    """Return the last positions that earn gold, silver and bronze among *teams* teams."""
    if teams < 1:
        raise ValueError(f"a leaderboard needs at least one team, given: {teams}")
    if teams < 100:
        places = (teams * 0.1, teams * 0.2, teams * 0.4)
    elif teams < 250:
        places = (10, teams * 0.2, teams * 0.4)
    elif teams < 1000:
        places = (10 + teams * 0.002, 50, 100)
    else:
        places = (10 + teams * 0.002, teams * 0.05, teams * 0.1)
    gold, silver, bronze = (max(1, math.floor(place + 1e-9)) for place in places)
    return gold, silver, bronze


def _place(teams: int, percent: int) -> int:
    """Return how many teams rank before the one whose score is the table's entry at *percent*."""
    return round((teams - 1) * percent / 100)
