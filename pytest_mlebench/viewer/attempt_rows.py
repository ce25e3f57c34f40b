"""Attempts as the viewer shows them: a card for one that runs, a row for each; JSON types."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from pytest_mlebench._plain_text import tail_lines
from pytest_mlebench._units import show_duration, show_score
from pytest_mlebench.attempts.record import Run
from pytest_mlebench.attempts.run_progress import AttemptProgress
from pytest_mlebench.host.usage import read_usage
from pytest_mlebench.layout import AttemptFolder
from pytest_mlebench.reports.page.usage_curves import usage_curves

TAIL_LINES, TAIL_COLUMNS = 15, 200


def attempt_card(one: AttemptProgress) -> dict[str, Any]:
    """Return an attempt that runs: its figures, its curves, the end of its log."""
    folder = AttemptFolder(one.folder)
    limit = "" if one.limit is None else f" of {show_duration(one.limit)}"
    curves = usage_curves(read_usage(folder.stats))
    return {
        "name": f"{one.competition} seed {one.seed}",
        "place": one.place,
        "time": f"{show_duration(max(1, round(one.elapsed)))}{limit}",
        "part": None if not one.limit else round(min(1.0, one.elapsed / one.limit), 3),
        "usage": [text for text in one.usage.texts.values() if text],
        "valid": one.submission_text,
        "spent": one.spent,
        "curves": [{"points": curve.points, "label": curve.label} for curve in curves],
        "log": tail_lines(folder.log, lines=TAIL_LINES, width=TAIL_COLUMNS),
    }


def attempt_row(run: Run, root: Path) -> dict[str, Any]:
    """Return an attempt in the table, with links to what it left; nothing of it is read."""
    record, grade = run.record, run.grade
    score = None if grade is None else grade.score
    seconds = None if record.ending is None else record.ending.seconds
    return {
        "name": run.competition,
        "seed": run.seed,
        "state": _state(run),
        "medal": str(grade.medal) if grade is not None and grade.medal else "",
        "score": "" if score is None else show_score(score),
        "time": "" if seconds is None else show_duration(max(0.1, round(seconds, 1))),
        "links": _links(run, root),
    }


def _state(run: Run) -> str:
    if run.phase != "graded" or run.grade is None:
        return run.phase
    return "graded" if run.grade.valid else "failed"


def _links(run: Run, root: Path) -> list[list[str]]:
    """Return what to call a file or folder, and where it is below the page of the run."""
    start = f"./{run.folder.relative_to(root).as_posix()}"
    links = [["files", f"{start}/"]]
    if run.phase not in ("created", "waiting"):
        links.append(["log", f"{start}/run.log"])
    if run.record.snapshots:
        links.append([f"{len(run.record.snapshots)} snapshots", f"{start}/snapshots/"])
    return [[name, quote(path)] for name, path in links]
