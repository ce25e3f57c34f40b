"""Download, verify and prepare datasets ahead of time, each once.

What is prepared already is left alone; a download that was interrupted is continued. Before the
first byte, credentials, accepted rules and free space are checked for the whole selection (exit
status 4 if something is missing). The exit status is 1 if a competition could not be prepared.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_mlebench.commands.shared import (
    add_competitions_option,
    add_data_dir_option,
    add_split_option,
    registry_of,
    say,
    split_names,
    store_folder,
)
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.kaggle.descriptions import original_description
from pytest_mlebench.store.bulk import Preparation, default_jobs, prepare_selection
from pytest_mlebench.store.obtain import KEEP_RAW
from pytest_mlebench.store.progress import on_terminal
from pytest_mlebench.store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("id", nargs="*", metavar="ID", help="prepare these competitions")
    parser.add_argument(
        "--competition", metavar="ID", action="append", default=[], help="the same; repeatable"
    )
    add_split_option(parser, "prepare the competitions of these splits")
    add_data_dir_option(parser)
    parser.add_argument(
        "--from",
        dest="source",
        metavar="DIR",
        type=Path,
        help="take DIR/ID.zip or raw files in DIR/ID instead of downloading",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=int,
        default=default_jobs(),
        help="competitions prepared at a time, while as many are fetched (default: %(default)s)",
    )
    parser.add_argument(
        "--keep-raw",
        choices=KEEP_RAW,
        default="none",
        help="what to keep of the downloaded files (default: %(default)s)",
    )
    parser.add_argument(
        "--verify",
        choices=("on", "off"),
        default="on",
        help="compare with the published checksums (default: %(default)s)",
    )
    parser.add_argument(
        "--description",
        choices=("ours", "kaggle"),
        default="ours",
        help="with kaggle, also fetch the original descriptions (default: %(default)s)",
    )
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Prepare the selection and say what became of it."""
    registry = registry_of(args)
    ids = registry.select(split_names(args), [*args.id, *args.competition])
    if not ids:
        raise ConfigError("nothing to prepare: name competitions, or a split with --split")
    if args.jobs < 1:
        raise ConfigError(f"--jobs must be at least 1, given: {args.jobs}")
    store = Store(store_folder(args))
    with on_terminal() as progress:
        preparations = prepare_selection(
            registry,
            ids,
            store,
            jobs=args.jobs,
            keep_raw=args.keep_raw,
            source=args.source,
            verify=args.verify == "on",
            progress=progress,
        )
        if args.description == "kaggle":
            for preparation in preparations:
                original_description(
                    preparation.competition, store.folder(preparation.competition), progress
                )
    return _summary(preparations, store)


def _summary(preparations: list[Preparation], store: Store) -> int:
    failed = [preparation for preparation in preparations if preparation.error is not None]
    for preparation in failed:
        say(f"FAILED {preparation.error}".replace("--mle-data-dir", "--data-dir"))  # as typed here
    unverified = sum(o.dataset is not None and o.dataset.verified == "off" for o in preparations)
    note = f", {unverified} not verified" if unverified else ""
    done = len(preparations) - len(failed)
    say(f"{done} of {len(preparations)} competition(s) prepared in {store.root}{note}")
    return 1 if failed else 0
