"""Remove what killed sessions left on the container engine.

Containers, networks and volumes whose owner was a process of this host and is dead are removed;
those of living processes, of other hosts and of other programs are left alone. With --images the
images that attempts were started from go too; they are made again when they are needed.
"""

from __future__ import annotations

import argparse

from pytest_mlebench.commands import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--dry-run", action="store_true", help="only show what would be removed")
    parser.add_argument(
        "--images", action="store_true", help="also the prepared images that no container uses"
    )


def run(args: argparse.Namespace) -> int:
    """Find and remove orphans."""
    # late on purpose: heavy
    from pytest_mlebench.sandbox.docker.engine import Engine
    from pytest_mlebench.sandbox.docker.orphans import (
        find_orphans,
        prepared_images,
        remove_images,
        remove_orphans,
    )

    engine = Engine()
    orphans = find_orphans(engine) if args.dry_run else remove_orphans(engine)
    lines = [orphan.describe() for orphan in orphans]
    if args.images:
        lines += prepared_images(engine) if args.dry_run else remove_images(engine)
    verb = "would remove" if args.dry_run else "removed"
    for line in lines:
        say(f"{verb} {line}")
    say(f"{verb} {len(lines)} in all" if lines else f"nothing to remove on {engine.address}")
    return 0
