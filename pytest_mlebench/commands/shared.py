"""What the commands of ``pytest-mlebench`` share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from pytest_mlebench.competition import Competition
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.summary import Line


def say(text: str = "") -> None:
    """Write a line to the standard output."""
    sys.stdout.write(f"{text}\n")


def say_lines(lines: Iterable[Line]) -> None:
    """Write the lines of a summary."""
    for line in lines:
        say(line.text)


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


def add_data_dir_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--data-dir``."""
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        type=Path,
        help="the dataset store (default: $MLEBENCH_DATA_DIR, else the reference "
        "implementation's cache folder)",
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
    from pytest_mlebench.commands.own_competitions import own_competitions  # late: reads files

    folders = {path.resolve(): None for path in (*own_competitions(), *args.competitions)}
    return Registry(folders)


def store_folder(args: argparse.Namespace) -> Path:
    """Return the dataset store that was chosen."""
    from pytest_mlebench.store.location import default_store

    return args.data_dir if args.data_dir is not None else default_store()


def split_names(args: argparse.Namespace) -> list[str]:
    """Return the names given with ``--split``."""
    return [name.strip() for name in (args.split or "").split(",") if name.strip()]


def selected(args: argparse.Namespace, registry: Registry) -> tuple[Competition, ...]:
    """Return the competitions of ``--split``, or all of them."""
    names = split_names(args)
    ids = registry.select(names) if names else registry.ids()
    return registry.load_all(ids)
