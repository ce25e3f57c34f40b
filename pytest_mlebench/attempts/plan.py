"""A run's folder as a report: what was to run, by ``run.json``; what became of it, by the records.

``run.json`` is written when a run begins and again when it is resumed, so that a report of a run
that was killed still knows what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from pytest_mlebench._files import write_text
from pytest_mlebench.attempts.record import Run, attempts
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.formats.json_file import load
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import Result

PLAN = "run.json"
SCHEMA = 1


def write_plan(folder: Path, expected: Iterable[tuple[str, int]], disclosure: Disclosure) -> None:
    """Write ``run.json``; what an earlier session of the same run expected stays expected."""
    before = read_plan(folder)[0] if (folder / PLAN).exists() else ()
    data = {
        "schema": SCHEMA,
        "expected": [list(key) for key in dict.fromkeys((*before, *expected))],
        "disclosure": disclosure.to_dict(),
    }
    text = json.dumps(data, indent=1, ensure_ascii=False)
    write_text(folder / PLAN, text + "\n")


def read_plan(folder: Path) -> tuple[tuple[tuple[str, int], ...], Disclosure]:
    """Return what a run was to do and under which conditions."""
    path = folder / PLAN
    if not path.is_file():
        raise ConfigError(f"{folder}: not the folder of a run (it has no {PLAN})")
    data = load(path)
    if data.get("schema") != SCHEMA:
        raise ConfigError(
            f"{path}: has schema {data.get('schema')!r}, this version reads schema {SCHEMA}"
        )
    return _expected(data.get("expected"), path), Disclosure.from_dict(
        data.get("disclosure"), f"{path}: disclosure"
    )


def read(folder: Path, registry: Registry) -> Report:
    """Return the report of a run, finished or not."""
    expected, disclosure = read_plan(folder)
    runs = list(_latest_runs(folder))
    images = sorted({image for run in runs if (image := run.outcome.get("image"))})
    if images and disclosure.image is None:
        disclosure = replace(disclosure, image=", ".join(images))
    results = [Result.from_run(run) for run in runs]
    return Report.of(results, registry=registry, disclosure=disclosure, expected=expected)


def _latest_runs(folder: Path) -> Iterator[Run]:
    """Yield for each competition and seed the newest attempt that is graded, else the newest."""
    for seed in sorted(folder.glob("*/seed*")):
        try:
            runs = attempts(seed)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ConfigError(
                f"{seed}: has a record that cannot be read: {type(error).__name__}: {error}"
            ) from None
        if runs:
            yield next((run for run in reversed(runs) if run.phase == "graded"), runs[-1])


def _expected(values: object, path: Path) -> tuple[tuple[str, int], ...]:
    if not isinstance(values, list):
        raise ConfigError(f"{path}: expected must be a list, given: {type(values).__name__}")
    for value in values:
        match value:
            case [str(), int()]:
                continue
        raise ConfigError(f"{path}: expected must list [competition, seed], given: {value!r}")
    return tuple((competition, seed) for competition, seed in values)
