"""A grade: what a submission scored and what that earns; and those left on the way."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_mlebench._units import show_score
from pytest_mlebench.errors import ConfigError, InvalidSubmission
from pytest_mlebench.medals import DECIMALS, Leaderboard, Medal, thresholds_text

if TYPE_CHECKING:
    from pytest_mlebench._toml import Table
    from pytest_mlebench.competition import Competition

    Scorer = Callable[[Competition, Path, Path], float]

REQUIREMENTS = ("pass", "median", "bronze", "silver", "gold")


@dataclass(frozen=True, repr=False)
class Grade:
    """The verdict on one submission."""

    competition: str  # its id
    score: float | None  # rounded; None when there is nothing valid to score
    medal: Medal  # what the score earns
    above_median: bool  # strictly better than the median team
    percentile: float | None  # percent of the teams that are worse; None where it is not known
    submission_exists: bool  # False where nothing was handed in
    problem: str | None  # why there is no score
    gold: float | None  # None: the competition has no leaderboard
    silver: float | None  # this and the next two: thresholds
    bronze: float | None  # the same
    median: float | None  # the median team's score
    lower_is_better: bool  # which of two scores is the better one
    teams: int  # how many there were; 0 where it is not known
    run: str | None = None  # where the run is

    @classmethod
    def of(
        cls,
        competition_id: str,
        leaderboard: Leaderboard,
        score: float | None,
        *,
        problem: str | None = None,
        submission_exists: bool = True,
        run: str | None = None,
    ) -> Grade:
        """Place a score, rounded first, on a leaderboard; without one a *problem* says why."""
        score = None if score is None else round(score, DECIMALS)
        unplaced = not leaderboard.percentiles  # thresholds may be known without the teams
        return cls(
            competition=competition_id,
            score=score,
            medal=Medal.NONE if score is None else leaderboard.medal(score),
            above_median=score is not None and leaderboard.above_median(score),
            percentile=None if score is None or unplaced else leaderboard.percentile(score),
            submission_exists=submission_exists,
            problem=problem,
            gold=leaderboard.gold,
            silver=leaderboard.silver,
            bronze=leaderboard.bronze,
            median=leaderboard.median,
            lower_is_better=leaderboard.lower_is_better,
            teams=leaderboard.teams,
            run=run,
        )

    def __repr__(self) -> str:
        """Explain the grade in a line that is short enough for pytest to show as a whole."""
        details = [thresholds_text(self), self._standing()] if self.valid else []
        return f"<Grade of {'; '.join([self._result(), *details, *self._where()])}>"

    @property
    def valid(self) -> bool:
        """Tell whether the submission has a score."""
        return self.score is not None

    def reaches(self, requirement: str) -> bool:
        """Tell whether the grade is good enough for ``--mle-require``."""
        if not self.valid or requirement not in REQUIREMENTS:
            return False
        if requirement == "pass":
            return True
        if requirement == "median":
            return self.above_median
        return self.medal >= Medal[requirement.upper()]

    def explain(self) -> list[str]:
        """Return a few lines that explain the grade to a person."""
        details = [f"thresholds: {thresholds_text(self)}", f"{self._standing()}{self._distance()}"]
        return [self._result(), *(details if self.valid else []), *self._where()]

    def _result(self) -> str:
        if self.score is None:
            return f"{self.competition}: {self.problem or 'no valid submission'}"
        direction = "lower" if self.lower_is_better else "higher"
        none = "no medal" if self.bronze is not None else "no leaderboard, hence no medals"
        earned = self.medal if self.medal else none
        return (
            f"{self.competition}: score {show_score(self.score)} ({direction} is better), {earned}"
        )

    def _where(self) -> list[str]:
        return [f"run: {self.run}"] if self.run else []

    def _standing(self) -> str:
        if self.percentile is None:  # a grade read from elsewhere, of a leaderboard we do not have
            return "the place among the teams is not known"
        return f"better than {self.percentile:g} % of {self.teams} teams"

    def _distance(self) -> str:
        if self.score is None or self.medal is Medal.GOLD:
            return ""
        following = Medal(self.medal + 1)
        known = {Medal.BRONZE: self.bronze, Medal.SILVER: self.silver, Medal.GOLD: self.gold}
        threshold = known[following]
        if threshold is None:
            return ""
        return f", {show_score(abs(threshold - self.score))} short of {following}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for a record."""
        return vars(self) | {"medal": str(self.medal)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Grade:
        """Return the grade that ``to_dict`` wrote."""
        return cls(**(data | {"medal": Medal[data["medal"].upper()]}))

    @classmethod
    def from_table(cls, table: Table, competition: str) -> Grade:
        """Return the grade in a table that anybody may have written: checked, key by key."""
        medal = table.choice("medal", tuple(str(medal) for medal in Medal))
        grade = cls(
            competition=competition,
            score=table.number("score", None),
            medal=Medal[medal.upper()],
            above_median=table.flag("above_median", False),
            percentile=table.number("percentile", None),
            submission_exists=table.flag("submission_exists", False),
            problem=table.text("problem", None),
            gold=table.number("gold", None),
            silver=table.number("silver", None),
            bronze=table.number("bronze", None),
            median=table.number("median", None),
            lower_is_better=table.flag("lower_is_better", False),
            teams=table.whole("teams", 0),
            run=table.text("run", None),
        )
        if grade.medal and not grade.valid:
            raise table.error("medal", f"is {medal!r}, but there is no score")
        return grade


@dataclass(frozen=True)
class Snapshot:
    """One of the submissions that an agent left on its way."""

    seconds: float  # since the attempt began
    sha256: str
    bytes: int
    score: float | None = None
    medal: Medal = Medal.NONE
    above_median: bool = False
    percentile: float | None = None
    problem: str | None = None

    def graded(self, grade: Grade) -> Snapshot:
        """Return the snapshot with what it would have earned."""
        return replace(
            self,
            score=grade.score,
            medal=grade.medal,
            above_median=grade.above_median,
            percentile=grade.percentile,
            problem=grade.problem,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for a record."""
        return vars(self) | {"medal": str(self.medal)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Snapshot:
        """Return the snapshot that ``to_dict`` wrote."""
        return cls(**{**data, "medal": Medal[data["medal"].upper()]})


def grade_submission(
    competition: Competition,
    submission: Path,
    private: Path,
    *,
    leaderboard: Leaderboard | None = None,
    run: str | None = None,
    score: Scorer | None = None,
) -> Grade:
    """Grade a file; an invalid one gets a grade without a score, not an exception.

    *score* does what ``Competition.score`` does, perhaps in another process.
    """
    board = competition.leaderboard if leaderboard is None else leaderboard
    try:
        if score is None:
            value = competition.score(submission, private)
        else:
            value = score(competition, submission, private)
    except InvalidSubmission as problem:
        exists = os.path.lexists(submission)  # False also for what cannot be a path
        return Grade.of(
            competition.id, board, None, problem=str(problem), submission_exists=exists, run=run
        )
    return Grade.of(competition.id, board, value, run=run)


def no_submission(competition: Competition, problem: str, run: str | None = None) -> Grade:
    """Return the grade of an agent that handed in nothing."""
    board = competition.leaderboard
    return Grade.of(competition.id, board, None, problem=problem, submission_exists=False, run=run)


def parse_requirement(value: str, option: str) -> str:
    """Return a requirement, or refuse it."""
    if value not in REQUIREMENTS:
        raise ConfigError(f"{option} must be one of {', '.join(REQUIREMENTS)}, given: {value}")
    return value
