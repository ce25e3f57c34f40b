"""What the commands of ``pytest-mlebench`` share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from pytest_mlebench._plain_text import one_line
from pytest_mlebench.competition import Competition
from pytest_mlebench.dataset import Dataset
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.summary import Line

RUNS = "mle-runs"  # where pytest keeps runs unless it is told otherwise


def say(text: str = "") -> None:
    """Write a line to the standard output."""
    sys.stdout.write(f"{text}\n")


def say_lines(lines: Iterable[Line]) -> None:
    """Write the lines of a summary."""
    for line in lines:
        say(line.text)


def say_notes(report: Report) -> None:
    """Write what a report notes of itself, such as how its files were read."""
    for note in report.disclosure.notes:
        say(f"  {one_line(note)}")


def ascii_only() -> bool:
    """Tell whether the standard output cannot show ``±``."""
    return "utf" not in (sys.stdout.encoding or "").lower()


def add_competitions_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--competitions``."""
    parser.add_argument(
        "--competitions",
        metavar="DIR",
        type=Path,
        action="append",
        default=[],
        help="a folder of competitions of your own, beside those that mle_competitions names in "
        "pytest's settings; repeatable",
    )


def add_submission_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what a command on one submission takes."""
    parser.add_argument("csv", type=Path, metavar="CSV", help="the submission")
    parser.add_argument("id", metavar="ID", help="the competition")
    add_data_dir_option(parser)
    add_competitions_option(parser)


def submission_of(args: argparse.Namespace) -> Path:
    """Return the submission of a command; a path that leads nowhere is a mistake of usage."""
    path: Path = args.csv
    if not path.exists():
        raise ConfigError(f"no such submission: {path}")
    return path


def add_data_dir_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--data-dir``."""
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        type=Path,
        help="the dataset store (default: mle_data_dir of pytest's settings, else "
        "$MLEBENCH_DATA_DIR, else the reference implementation's cache folder)",
    )


def add_runs_dir_option(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare ``--runs-dir``."""
    parser.add_argument(
        "--runs-dir",
        metavar="DIR",
        type=Path,
        help=f"{what} (default: mle_runs_dir of pytest's settings, else {RUNS})",
    )


def add_split_option(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare ``--split``."""
    parser.add_argument(
        "--split",
        metavar="NAME[,NAME]",
        help=f"{what}: demo, lite (= low), medium, high, all, dev, systemcard, or a file of ids",
    )


def registry_of(args: argparse.Namespace) -> Registry:
    """Return the built-in competitions, the repository's own and those of ``--competitions``."""
    from pytest_mlebench.commands.pytest_settings import own_competitions  # late: reads files

    folders = {path.resolve(): None for path in (*own_competitions(), *args.competitions)}
    return Registry(folders)


def store_folder(args: argparse.Namespace) -> Path:
    """Return the dataset store that was chosen, as pytest would; one that is a file is refused."""
    # late on purpose: reads files
    from pytest_mlebench.commands.pytest_settings import folder_setting
    from pytest_mlebench.store.location import STORE_VARIABLE, default_store

    if args.data_dir is not None:
        chosen, label = args.data_dir, "--data-dir"
    else:
        chosen, label = folder_setting("mle_data_dir") or (default_store(), STORE_VARIABLE)
    return _folder(chosen, label)


def runs_folder(given: Path | None, label: str = "--runs-dir") -> Path:
    """Return the folder of runs that was chosen, as pytest would; a file is refused."""
    from pytest_mlebench.commands.pytest_settings import folder_setting  # late: reads files

    if given is not None:
        return _folder(given, label)
    chosen, label = folder_setting("mle_runs_dir") or (Path(RUNS), label)
    return _folder(chosen, label)


def _folder(path: Path, label: str) -> Path:
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{label} must be a folder, given: {path}")
    return path


def dataset_of(name: str, registry: Registry, store: Path) -> Dataset:
    """Return the prepared dataset; only one whose data are at hand is made on the spot."""
    from pytest_mlebench.store.store import Store  # late on purpose: heavy

    competition, kept = registry.load(name), Store(store)
    found = kept.find(competition)  # also what was prepared with verification off
    if found is not None:
        return found
    if not competition.is_at_hand:
        raise ConfigError(
            f"{name}: not prepared in {store}: run pytest-mlebench prepare {name}, "
            "or name another store with --data-dir"
        )
    return kept.ensure(competition)


def split_names(args: argparse.Namespace) -> list[str]:
    """Return the names given with ``--split``."""
    return [name.strip() for name in (args.split or "").split(",") if name.strip()]


def selected(args: argparse.Namespace, registry: Registry) -> tuple[Competition, ...]:
    """Return the competitions of ``--split``, or all of them."""
    names = split_names(args)
    ids = registry.select(names) if names else registry.ids()
    return registry.load_all(ids)
