"""Grading reports in the reference implementation's JSON format, read and written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_mlebench._toml import Table
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.grade import Grade
from pytest_mlebench.medals import Leaderboard, Medal
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.content import Content
from pytest_mlebench.reports.formats.json_file import load
from pytest_mlebench.reports.results import ItemKey, Result, Status, json_table

ENTRIES = "competition_reports"


def is_reference(data: Mapping[str, Any]) -> bool:
    """Tell whether a parsed file claims to be a grading report of the reference."""
    return ENTRIES in data


def read(paths: Sequence[Path], registry: Registry) -> Content:
    """Read one file per seed; a competition that a file lacks is missing for that seed.

    In a single file the n-th entry of a competition is its n-th seed.
    """
    results: list[Result] = []
    for number, path in enumerate(paths):
        entries = _entries(load(path), str(path))
        results += _read_file(entries, str(path), registry, None if len(paths) == 1 else number)
    ids = dict.fromkeys(result.competition for result in results)
    seeds = sorted({result.seed for result in results})
    expected = tuple(ItemKey(competition, seed) for competition in ids for seed in seeds)
    return Content(tuple(results), expected=expected)


def to_reference(results: Sequence[Result], created: str) -> dict[str, Any]:
    """Return results as a grading report; a result without a grade has no thresholds."""
    return {
        "total_runs": len(results),
        "total_runs_with_submissions": sum(
            result.grade is not None and result.grade.submission_exists for result in results
        ),
        "total_valid_submissions": sum(result.valid for result in results),
        "total_medals": sum(result.medal > Medal.NONE for result in results),
        "total_gold_medals": sum(result.medal is Medal.GOLD for result in results),
        "total_silver_medals": sum(result.medal is Medal.SILVER for result in results),
        "total_bronze_medals": sum(result.medal is Medal.BRONZE for result in results),
        "total_above_median": sum(result.above_median for result in results),
        ENTRIES: [_entry(result, created) for result in results],
    }


def _entries(data: Mapping[str, Any], where: str) -> list[Any]:
    entries = data.get(ENTRIES)
    if not isinstance(entries, list):
        raise ConfigError(f"{where}: not a grading report: {ENTRIES} must be a list")
    if not entries:
        raise ConfigError(f"{where}: the grading report has no {ENTRIES}")
    return entries


def _read_file(
    entries: list[Any], where: str, registry: Registry, seed: int | None
) -> list[Result]:
    counts: dict[str, int] = {}
    results = []
    for number, entry in enumerate(entries):
        grade, competition, path = _read_entry(entry, f"{where}: {ENTRIES}[{number}]", registry)
        turn = counts.get(competition, 0)
        counts[competition] = turn + 1
        if turn and seed is not None:
            raise ConfigError(
                f"{where}: {competition} occurs twice; of several files each must hold one seed"
            )
        results.append(
            Result(
                competition=competition,
                seed=turn if seed is None else seed,
                status=_status(grade),
                grade=grade,
                error="not graded, says the grading report" if grade is None else None,
                run=None if path in {"", "None"} else path,  # theirs may be the word itself
            )
        )
    return results


def _status(grade: Grade | None) -> Status:
    if grade is None:
        return "missing"
    return "graded" if grade.valid else "failed"


def _read_entry(entry: object, where: str, registry: Registry) -> tuple[Grade | None, str, str]:
    """Return the grade, the competition and the path of the submission."""
    table = json_table(entry, where)
    competition = table.text("competition_id")
    path = table.text("submission_path", "")
    score = table.number("score", None)
    valid = table.flag("valid_submission", score is not None)
    if score is None and valid:
        raise table.error("score", "is missing, though valid_submission is true")
    problem = None if valid else "not valid, says the grading report"
    if score is not None and (not valid or not math.isfinite(score)):
        score, problem = None, problem or f"the score is {score}"
    claims = [name for name in _MEDALS if table.flag(f"{name}_medal", False)]
    if score is None and not claims and isinstance(entry, Mapping) and _is_blank(entry):
        return None, competition, path
    board = _board(table, competition, registry)
    grade = Grade.of(
        competition,
        board,
        score,
        problem=problem,
        submission_exists=table.flag("submission_exists", valid),
    )
    _refuse_contradictions(table, claims, grade)
    return grade, competition, path


def _is_blank(entry: Mapping[str, Any]) -> bool:
    """Tell whether an entry has no threshold at all: it speaks of a run that was not graded."""
    return all(entry.get(f"{name}_threshold") is None for name in (*_MEDALS, "median"))


def _board(table: Table, competition: str, registry: Registry) -> Leaderboard:
    """Return the file's own thresholds, with the teams and percentiles that we know of."""
    known = registry.load(competition).leaderboard if competition in registry.ids() else None
    return Leaderboard(
        teams=0 if known is None else known.teams,
        lower_is_better=table.flag("is_lower_better", False),
        gold=table.number("gold_threshold"),
        silver=table.number("silver_threshold"),
        bronze=table.number("bronze_threshold"),
        median=table.number("median_threshold"),
        percentiles=() if known is None else known.percentiles,
    )


def _refuse_contradictions(table: Table, claims: list[str], grade: Grade) -> None:
    """Refuse a medal or a flag that the score does not earn by the file's own thresholds."""
    earned = [str(grade.medal)] if grade.medal else []
    if claims != earned:
        raise ConfigError(
            f"{table.where}: {grade.competition} claims {' and '.join(claims) or 'no medal'}, but "
            f"the score {grade.score} earns {' '.join(earned) or 'no medal'} by its own thresholds"
        )
    for key, value in {"any_medal": bool(earned), "above_median": grade.above_median}.items():
        if table.flag(key, value) is not value:
            raise table.error(key, f"is {not value}, which the score {grade.score} contradicts")


def _entry(result: Result, created: str) -> dict[str, Any]:
    grade = result.grade
    return {
        "competition_id": result.competition,
        "score": None if grade is None else grade.score,
        "gold_threshold": None if grade is None else grade.gold,
        "silver_threshold": None if grade is None else grade.silver,
        "bronze_threshold": None if grade is None else grade.bronze,
        "median_threshold": None if grade is None else grade.median,
        "any_medal": result.medal > Medal.NONE,
        "gold_medal": result.medal is Medal.GOLD,
        "silver_medal": result.medal is Medal.SILVER,
        "bronze_medal": result.medal is Medal.BRONZE,
        "above_median": result.above_median,
        "submission_exists": grade is not None and grade.submission_exists,
        "valid_submission": result.valid,
        "is_lower_better": None if grade is None else grade.lower_is_better,
        "created_at": created,
        "submission_path": _submission(result.run),
    }


def _submission(run: str | None) -> str | None:
    """Return the file in a run's folder; a path taken from a grading report is one already."""
    return run if run is None or run.endswith(".csv") else f"{run}/submission.csv"


_MEDALS = ("gold", "silver", "bronze")
