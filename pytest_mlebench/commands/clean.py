"""Remove what killed sessions left: workspaces, leases, and what the container engine keeps.

Of runs, only the workspaces go that no session is at work on; records, submissions and logs stay.
Leases of dead processes go. Of the engine, containers, networks and volumes go whose owner was a
process of this host and is dead; those of living processes, of other hosts and of other programs
are left alone. With --cache the images made ready for attempts, those unpacked in the dataset store
that no session uses, and the datasets copied to an engine elsewhere go too; they are made again
when they are needed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from pytest_mlebench._files import short_path
from pytest_mlebench.commands.shared import (
    add_data_dir_option,
    add_runs_dir_option,
    runs_folder,
    say,
    store_folder,
)
from pytest_mlebench.errors import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_runs_dir_option(parser, "where the runs are")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    parser.add_argument(
        "--cache", action="store_true", help="also images and datasets that can be made again"
    )
    add_data_dir_option(parser)


def run(args: argparse.Namespace) -> int:
    """Find and remove what was left."""
    verb = "would remove" if args.dry_run else "removed"
    count = 0
    for line in (*_workspaces(args), *_leases(args), *_images(args), *_engine(args)):
        say(f"{verb} {line}")
        count += 1
    say(f"{verb} {count} in all" if count else "nothing to remove")
    return 0


def _workspaces(args: argparse.Namespace) -> Iterator[str]:
    from pytest_mlebench.attempts.leftovers import find_workspaces, idle_runs, remove_workspaces

    clean = find_workspaces if args.dry_run else remove_workspaces
    for folder in idle_runs(runs_folder(args.runs_dir)):
        yield from (f"workspace {short_path(path)}" for path in clean(folder))


def _leases(args: argparse.Namespace) -> Iterator[str]:
    from pytest_mlebench.host.leases import LeaseLedger

    for entry in LeaseLedger().dead(remove=not args.dry_run):
        yield f"lease of {entry.describe()}"


def _images(args: argparse.Namespace) -> Iterator[str]:
    from pytest_mlebench.sandbox.rootless import image_cache  # late on purpose: heavy

    if args.cache:
        clean = image_cache.find_unused if args.dry_run else image_cache.remove_unused
        for path in clean(store_folder(args) / image_cache.FOLDER):
            yield f"unpacked image {short_path(path)}"


def _engine(args: argparse.Namespace) -> Iterator[str]:
    # late on purpose: heavy
    from pytest_mlebench.sandbox.docker import cleanup
    from pytest_mlebench.sandbox.docker.engine import Engine

    try:
        engine = Engine()
        _ = engine.facts
    except ConfigError as problem:
        say(f"no container engine to look at: {problem}")
        return
    find = cleanup.find_orphans if args.dry_run else cleanup.remove_orphans
    yield from (orphan.describe() for orphan in find(engine))
    if args.cache:
        look = cleanup.find_cache if args.dry_run else cleanup.remove_cache
        yield from (item.describe() for item in look(engine))
