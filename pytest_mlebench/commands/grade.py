"""Grade many submissions: each line of FILE.jsonl names one, in the reference's own format:

    {"competition_id": "spooky-author-identification", "submission_path": "out/submission.csv"}

A path that is null stands for a run without a submission. Further keys are passed over. Instead of
a file, the folder of a run group may be given (runs/GROUP with its metadata.json, as the reference
implementation leaves it). The n-th line or run of a competition is its n-th seed. Two files are
written: a grading report in the reference implementation's format and a report of our own. The exit
status is 1 if a file that is named does not exist or is not valid.
"""

from __future__ import annotations

import argparse
import json
import os
from datetime import datetime
from pathlib import Path

from pytest_mlebench._files import write_text
from pytest_mlebench.attempts.grading_process import score_apart
from pytest_mlebench.commands.shared import (
    add_competitions_option,
    add_data_dir_option,
    ascii_only,
    dataset_of,
    registry_of,
    say,
    say_lines,
    store_folder,
)
from pytest_mlebench.dataset import Dataset
from pytest_mlebench.errors import ConfigError, InfrastructureError, UnknownName
from pytest_mlebench.grade import grade_submission, no_submission
from pytest_mlebench.layout import GROUP
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.formats.json_file import load_json
from pytest_mlebench.reports.formats.reference_report import to_reference
from pytest_mlebench.reports.json_table import json_table
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import ItemKey, Result
from pytest_mlebench.reports.summary import problem_lines, summary_lines

Line = tuple[str, Path | None]  # a competition, and its submission if there is one


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE.jsonl|RUN_GROUP",
        help="the submissions, one a line; or the folder of a run group",
    )
    parser.add_argument(
        "--output-dir",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="where the two reports go (default: the current folder)",
    )
    add_data_dir_option(parser)
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Grade."""
    registry = registry_of(args)
    read = read_run_group if args.file.is_dir() else read_lines
    lines = read(args.file, registry)
    datasets = {name: dataset_of(name, registry, store_folder(args)) for name, _ in lines}
    counts: dict[str, int] = {}
    results = []
    for name, path in lines:
        seed = counts.get(name, 0)
        counts[name] = seed + 1
        results.append(_result(datasets[name], path, seed))
    expected = [ItemKey(name, seed) for name in datasets for seed in range(max(counts.values()))]
    disclosure = _disclosure(datasets)
    report = Report.of(results, registry=registry, disclosure=disclosure, expected=expected)
    say_lines(summary_lines(report.results, report.membership, ascii_only=ascii_only()))
    say_lines(problem_lines(report.results))
    for path in _write(report, results, args.output_dir):
        say(f"wrote {path}")
    # not Path.exists: a name that no file can have is no error here
    absent = [str(p) for _, p in lines if p is not None and not os.path.exists(p)]  # noqa: PTH110
    if absent:
        shown = f"{', '.join(absent[:3])}{', …' if len(absent) > 3 else ''}"
        say(f"{len(absent)} of {len(lines)} files do not exist: {shown}")
    pairs = zip(lines, results, strict=True)
    bad = any(r.status == "error" or (r.status == "failed" and path) for (_, path), r in pairs)
    return 1 if bad else 0


def read_lines(file: Path, registry: Registry) -> list[Line]:
    """Return the competition and the submission of every line, or name the line that is wrong."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(f"cannot read {file}: {reason}") from None
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{file} line {number}"
        try:
            table = json_table(json.loads(line), where)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{where}: not valid JSON: {error}") from None
        name = _known(table.text("competition_id"), where, registry)
        path = None if _is_null(line) else table.text("submission_path")
        found.append((name, None if path is None else Path(path)))
    if not found:
        raise ConfigError(f"{file} names no submission")
    return found


def read_run_group(folder: Path, registry: Registry) -> list[Line]:
    """Return the competition and the submission of every run of a group of the reference's.

    A run's folder is called COMPETITION_LETTERS; no id of a competition has an underscore.
    """
    file = folder / GROUP
    if not file.is_file():
        raise ConfigError(f"{folder}: not the folder of a run group (it has no {GROUP})")
    runs = json_table(load_json(file), str(file)).table("runs").take_all()
    found: list[Line] = []
    for run in runs:
        where = f"{file}: runs: {run}"
        if Path(run).name != run:
            raise ConfigError(f"{where}: must be the name of a folder beside {GROUP}")
        path = folder / run / "submission" / "submission.csv"
        present = path.is_file() or path.is_symlink()
        found.append((_known(run.split("_")[0], where, registry), path if present else None))
    if not found:
        raise ConfigError(f"{file} names no run")
    return found


def _is_null(line: str) -> bool:
    """Tell whether the path is there and null: an agent that handed in nothing."""
    data = json.loads(line)
    return "submission_path" in data and data["submission_path"] is None


def _known(name: str, where: str, registry: Registry) -> str:
    if name not in registry.ids():
        raise UnknownName(f"competition in {where}:", name, registry.ids())
    return name


def _result(dataset: Dataset, path: Path | None, seed: int) -> Result:
    name = dataset.competition.id
    if path is None:
        return Result(name, seed, "failed", no_submission(dataset.competition, "no submission"))
    try:
        grade = grade_submission(dataset.competition, path, dataset.private, score=score_apart)
    except InfrastructureError as error:
        return Result(name, seed, "error", error=str(error), run=str(path))
    return Result(name, seed, "graded" if grade.valid else "failed", grade, run=str(path))


def _disclosure(datasets: dict[str, Dataset]) -> Disclosure:
    from pytest_mlebench import __version__

    return Disclosure(
        plugin_version=__version__,
        data={name: dataset.verified for name, dataset in datasets.items()},
        notes=("files that existed already were graded; how they came about is not known",),
    )


def _write(report: Report, graded: list[Result], folder: Path) -> tuple[Path, Path]:
    stamp = datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    theirs = folder / f"{stamp}_grading_report.json"
    ours = folder / f"{stamp}_report.json"
    text = json.dumps(to_reference(graded, report.created), indent=2)
    try:
        write_text(theirs, text + "\n")
    except OSError as error:
        raise ConfigError(f"cannot write to --output-dir {folder}: {error.strerror}") from None
    report.write(ours)
    return theirs, ours
