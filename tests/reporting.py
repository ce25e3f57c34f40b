"""Makers of results for the tests of numbers and reports."""

from __future__ import annotations

from pathlib import Path

from pytest_mlebench.grade import Grade
from pytest_mlebench.medals import Medal
from pytest_mlebench.results import Result

REAL_REPORTS = sorted((Path(__file__).parent / "data" / "real-reports").glob("*.json"))
SCORES = {Medal.GOLD: 0.95, Medal.SILVER: 0.85, Medal.BRONZE: 0.75, Medal.NONE: 0.55}


def graded(competition: str, seed: int = 0, medal: Medal = Medal.NONE) -> Result:
    """Return a result whose score earns *medal* (thresholds 0.9, 0.8, 0.7, median 0.6)."""
    grade = Grade(
        competition=competition,
        score=SCORES[medal],
        medal=medal,
        above_median=SCORES[medal] > 0.6,
        percentile=100 * SCORES[medal],
        submission_exists=True,
        problem=None,
        gold=0.9,
        silver=0.8,
        bronze=0.7,
        median=0.6,
        lower_is_better=False,
        teams=100,
    )
    return Result(competition, seed, "graded", grade, agent_seconds=3600.0, format_checks=2)


def failed(competition: str, seed: int = 0, problem: str = "no submission.csv") -> Result:
    """Return the result of an agent that handed in nothing valid."""
    grade = Grade(
        competition=competition,
        score=None,
        medal=Medal.NONE,
        above_median=False,
        percentile=None,
        submission_exists=False,
        problem=problem,
        gold=0.9,
        silver=0.8,
        bronze=0.7,
        median=0.6,
        lower_is_better=False,
        teams=100,
    )
    return Result(competition, seed, "failed", grade)


def errored(competition: str, seed: int = 0) -> Result:
    """Return a result that the benchmark itself is to blame for."""
    return Result(competition, seed, "error", error="the engine is gone")
