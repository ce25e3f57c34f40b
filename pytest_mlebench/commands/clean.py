"""Remove what killed sessions left on the container engine.

Containers, networks and volumes whose owner was a process of this host and is dead are removed;
those of living processes, of other hosts and of other programs are left alone. With --cache the
images made ready for attempts and the datasets copied to an engine elsewhere go too; they are made
again when they are needed.
"""

from __future__ import annotations

import argparse

from pytest_mlebench.commands.shared import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--dry-run", action="store_true", help="only show what would be removed")
    parser.add_argument(
        "--cache", action="store_true", help="also images and datasets kept for later attempts"
    )


def run(args: argparse.Namespace) -> int:
    """Find and remove what was left."""
    # late on purpose: heavy
    from pytest_mlebench.sandbox.docker import cleanup
    from pytest_mlebench.sandbox.docker.engine import Engine

    engine = Engine()
    find = cleanup.find_orphans if args.dry_run else cleanup.remove_orphans
    lines = [orphan.describe() for orphan in find(engine)]
    if args.cache:
        look = cleanup.find_cache if args.dry_run else cleanup.remove_cache
        lines += [item.describe() for item in look(engine)]
    verb = "would remove" if args.dry_run else "removed"
    for line in lines:
        say(f"{verb} {line}")
    say(f"{verb} {len(lines)} in all" if lines else f"nothing to remove on {engine.address}")
    return 0
