"""Reading results, whatever they are: a run's folder, a report, the reference's grading reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.layout import GROUP, PLAN
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.formats import json_file, reference_report
from pytest_mlebench.reports.report_content import Content


def read_any(paths: Sequence[Path], registry: Registry) -> Content:
    """Read the folder of a run, a report, or grading reports of the reference implementation."""
    files = list(paths)
    if len(files) == 1 and files[0].is_dir():
        if (files[0] / PLAN).is_file():
            return read_run(files[0])
        files = _reports_in(files[0])
    return read_file(files[0], registry) if len(files) == 1 else _seeds(files, registry)


def read_file(path: Path, registry: Registry) -> Content:
    """Read a report of our own, or one grading report of the reference implementation."""
    data = json_file.load_json(path)
    if reference_report.is_reference(data):
        return read_reference([path], registry)
    return json_file.parse(data, str(path))


def read_reference(paths: Sequence[Path], registry: Registry) -> Content:
    """Read grading reports of the reference implementation, whatever part each file holds."""
    return reference_report.read(paths, registry)


def read_run(folder: Path) -> Content:
    """Read the folder of a run, finished or not."""
    # late on purpose: a run's records belong to the layer above, which a report alone needs not
    from pytest_mlebench.attempts.run_results import read_run_folder

    return read_run_folder(folder)


def _reports_in(folder: Path) -> list[Path]:
    """Return the reports in a folder; beside grading reports the reference keeps other files."""
    files = sorted(folder.glob("*grading_report*.json")) or sorted(folder.glob("*.json"))
    if not files:
        raise ConfigError(
            f"{folder}: neither the folder of a run (it has no {PLAN}) "
            "nor a folder of grading reports (it has no .json file)"
        )
    if [path.name for path in files] == [GROUP]:
        raise ConfigError(
            f"{folder}: a run group that is not graded yet, use pytest-mlebench grade {folder}"
        )
    return files


def _seeds(files: Sequence[Path], registry: Registry) -> Content:
    for path in files:
        if not reference_report.is_reference(json_file.load_json(path)):
            raise ConfigError(
                f"{path}: several files are read as results of one agent, which takes "
                "grading reports of the reference implementation; this is none"
            )
    return read_reference(files, registry)
