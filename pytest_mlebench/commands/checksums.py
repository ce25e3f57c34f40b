"""Show the md5 sums of a prepared dataset; with --write, put them into its competition.toml.

For competitions of your own: from then on, data that have changed are noticed before an agent runs.
The sums of MLE-bench's competitions are published and stay as they are.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pytest_mlebench._files import md5, write_text
from pytest_mlebench.commands.shared import (
    add_competitions_option,
    add_data_dir_option,
    registry_of,
    say,
    store_folder,
)
from pytest_mlebench.competition import FILE, Competition
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.registry import builtin_competitions

PARTS = ("public", "private")
MAX_FILES = 50  # of a folder; of more, only tables count
DESCRIPTION = "description.md"  # prose may change without the data having changed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("id", metavar="ID", help="the competition")
    parser.add_argument("--write", action="store_true", help=f"put them into its {FILE}")
    add_data_dir_option(parser)
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Prepare the dataset if need be, and show or write its sums."""
    from pytest_mlebench.store.store import Store  # late on purpose: heavy

    competition = registry_of(args).load(args.id)
    if args.write and competition.folder.parent == builtin_competitions():
        raise ConfigError(f"--write is for competitions of your own, {args.id} comes with us")
    dataset = Store(store_folder(args)).ensure(competition, verify=False)
    if args.write:
        say(f"wrote {write_checksums(competition, dataset.public.parent)}")
    else:
        say("\n".join(_lines(dataset.public.parent)))
    return 0


def write_checksums(competition: Competition, prepared: Path) -> Path:
    """Put the sums of a prepared folder into the competition's file, in the place of older ones."""
    path = competition.folder / FILE
    kept = _without_checksums(path.read_text(encoding="utf-8").splitlines())
    write_text(path, "\n".join([*kept, "", *_lines(prepared)]) + "\n")
    return path


def _lines(prepared: Path) -> list[str]:
    lines: list[str] = []
    for part in PARTS:
        lines += ["", f"[checksums.{part}]"] if lines else [f"[checksums.{part}]"]
        lines += [
            f"{json.dumps(name)} = {json.dumps(total)}" for name, total in _sums(prepared / part)
        ]
    return lines


def _sums(folder: Path) -> list[tuple[str, str]]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    if len(files) > MAX_FILES:
        files = [path for path in files if path.suffix == ".csv"]
    names = [(path.relative_to(folder).as_posix(), path) for path in files]
    return [(name, md5(path)) for name, path in names if name != DESCRIPTION]


def _without_checksums(lines: list[str]) -> list[str]:
    """Return the lines of a file but for its tables of checksums."""
    kept, inside = [], False
    for line in lines:
        if line.lstrip().startswith("["):
            inside = line.strip().startswith("[checksums")
        if not inside:
            kept.append(line)
    while kept and not kept[-1].strip():
        kept.pop()
    return kept
