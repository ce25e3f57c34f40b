"""Grading reports in the reference implementation's JSON format, read and written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_mlebench._toml import Table
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.grade import Grade
from pytest_mlebench.medals import Leaderboard, Medal
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.formats.json_file import load_json
from pytest_mlebench.reports.json_table import json_table
from pytest_mlebench.reports.report_content import Content
from pytest_mlebench.reports.results import ItemKey, Result, Status

ENTRIES = "competition_reports"


def is_reference(data: object) -> bool:
    """Tell whether a parsed file claims to be a grading report, a part of one, or a list of such.

    ``mlebench grade`` writes reports, ``mlebench grade-sample`` prints a single entry.
    """
    if isinstance(data, list):
        return all(isinstance(each, Mapping) and "competition_id" in each for each in data)
    return isinstance(data, Mapping) and (ENTRIES in data or "competition_id" in data)


def read(paths: Sequence[Path], registry: Registry) -> Content:
    """Read files of one agent: the n-th entry of a competition over all files is its n-th seed.

    So it does not matter whether a file holds a seed, several, or a part of the competitions.
    """
    reader = _Reader(registry)
    for path in paths:
        reader.add(load_json(path), str(path))
    results = reader.results
    ids = dict.fromkeys(result.competition for result in results)
    seeds = sorted({result.seed for result in results})
    expected = tuple(ItemKey(competition, seed) for competition in ids for seed in seeds)
    notes = (_how_it_was_read(len(paths), len(ids), len(seeds)), *reader.notes())
    return Content(tuple(results), Disclosure(notes=notes), expected=expected)


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


class _Reader:
    """What has been read so far, file by file."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.results: list[Result] = []
        self._counts: Counter[str] = Counter()
        self._borrowed: dict[str, None] = {}  # competitions whose thresholds are our own

    def add(self, data: object, where: str) -> None:
        """Read a file."""
        entries, place = _entries(data, where)
        for number, entry in enumerate(entries):
            self._add_entry(entry, f"{where}: {place}[{number}]")

    def notes(self) -> list[str]:
        """Return what a reader of the figures must know about them."""
        if not self._borrowed:
            return []
        names = ", ".join(self._borrowed)
        return [f"thresholds that the files lack were taken from our own leaderboards: {names}"]

    def _add_entry(self, entry: object, where: str) -> None:
        table = json_table(entry, where)
        competition = table.text("competition_id")
        path = table.text("submission_path", "")
        grade = self._grade(table, competition, _keys(entry))
        seed = self._counts[competition]
        self._counts[competition] += 1
        self.results.append(
            Result(
                competition=competition,
                seed=seed,
                status=_status(grade),
                grade=grade,
                error="not graded, says the grading report" if grade is None else None,
                run=None if path in {"", "None"} else path,  # theirs may be the word itself
            )
        )

    def _grade(self, table: Table, competition: str, given: frozenset[str]) -> Grade | None:
        score = table.number("score", None)
        valid = table.flag("valid_submission", score is not None)
        if score is None and valid:
            raise table.error("score", "is missing, though valid_submission is true")
        problem = None if valid else "not valid, says the grading report"
        if score is not None and (not valid or not math.isfinite(score)):
            score, problem = None, problem or f"the score is {score}"
        claims = [name for name in _MEDALS if table.flag(f"{name}_medal", False)]
        if score is None and not claims and not given & _THRESHOLDS:
            return None  # it speaks of a run that was not graded
        board = self._board(table, competition, given)
        grade = Grade.of(
            competition,
            board,
            score,
            problem=problem,
            submission_exists=table.flag("submission_exists", valid),
        )
        _refuse_contradictions(table, claims, grade)
        return grade

    def _board(self, table: Table, competition: str, given: frozenset[str]) -> Leaderboard:
        """Return the file's own thresholds; what it lacks is what we know of the competition."""
        known = (
            self.registry.load(competition).leaderboard
            if competition in self.registry.ids()
            else None
        )
        if known is not None and not given >= _FIGURES:
            self._borrowed[competition] = None

        def threshold(name: str) -> float:
            key = f"{name}_threshold"
            return table.number(key) if known is None else table.number(key, getattr(known, name))

        return Leaderboard(
            teams=0 if known is None else known.teams,
            lower_is_better=table.flag(
                "is_lower_better", False if known is None else known.lower_is_better
            ),
            gold=threshold("gold"),
            silver=threshold("silver"),
            bronze=threshold("bronze"),
            median=threshold("median"),
            percentiles=() if known is None else known.percentiles,
        )


def _entries(data: object, where: str) -> tuple[list[Any], str]:
    """Return the entries of a file, and what their list is called in it."""
    if isinstance(data, Mapping) and ENTRIES not in data and "competition_id" in data:
        return [data], "entry"
    entries = data.get(ENTRIES) if isinstance(data, Mapping) else data
    if not isinstance(entries, list):
        raise ConfigError(f"{where}: not a grading report: {ENTRIES} must be a list")
    if not entries:
        raise ConfigError(f"{where}: the grading report has no {ENTRIES}")
    return entries, ENTRIES if isinstance(data, Mapping) else "list"


def _keys(entry: object) -> frozenset[str]:
    """Return the keys that an entry has a value for."""
    if not isinstance(entry, Mapping):
        return frozenset()
    return frozenset(key for key, value in entry.items() if value is not None)


def _how_it_was_read(files: int, competitions: int, seeds: int) -> str:
    counts = {"grading report": files, "competition": competitions, "seed": seeds}
    reports, ids, turns = (
        f"{number} {noun}{'' if number == 1 else 's'}" for noun, number in counts.items()
    )
    return f"read {reports} as {turns} of {ids}: the n-th entry of a competition is its n-th seed"


def _status(grade: Grade | None) -> Status:
    if grade is None:
        return "missing"
    return "graded" if grade.valid else "failed"


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
_THRESHOLDS = frozenset(f"{name}_threshold" for name in (*_MEDALS, "median"))
_FIGURES = _THRESHOLDS | {"is_lower_better"}
