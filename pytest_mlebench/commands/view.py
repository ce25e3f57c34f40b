"""Look at runs in a browser: all of a folder, one that goes on, reports, comparisons.

Serves on 127.0.0.1 only, and only reads. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import webbrowser
from pathlib import Path

from pytest_mlebench._files import short_path
from pytest_mlebench.commands.shared import (
    RUNS,
    add_competitions_option,
    registry_of,
    runs_folder,
    say,
)
from pytest_mlebench.errors import ConfigError

MAX_PORT = 65_535


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "runs",
        nargs="?",
        type=Path,
        metavar="RUNS_DIR",
        help=f"where the runs are (default: mle_runs_dir of pytest's settings, else {RUNS})",
    )
    parser.add_argument("--port", type=int, default=0, help="the port (default: a free one)")
    parser.add_argument("--no-browser", action="store_true", help="do not open the browser")
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from pytest_mlebench.viewer.server import Viewer, serve  # late on purpose: heavy

    runs = runs_folder(args.runs, "RUNS_DIR")
    if not runs.is_dir():
        raise ConfigError(f"{runs}: no such folder of runs, give the one of --mle-runs-dir")
    if not 0 <= args.port <= MAX_PORT:
        raise ConfigError(f"--port must be from 0 to {MAX_PORT}, given: {args.port}")

    def ready(address: str) -> None:
        say(f"{short_path(runs)}: {address} (Ctrl-C ends it)")
        if not args.no_browser:
            webbrowser.open(address)

    viewer = Viewer(runs.resolve(), registry_of(args))
    try:
        asyncio.run(serve(viewer, args.port, ready))
    except KeyboardInterrupt:
        return 0
    return 0
