"""Pack a run into one zip that anybody can verify: pytest-mlebench verify FILE.zip.

It holds the plan, records, submissions, snapshots, code and logs of every attempt, the report and a
manifest with the sha256 sum of each file. Secrets were masked when code and logs were collected;
submissions are as they were handed in.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_mlebench._files import sha256
from pytest_mlebench._units import show_size
from pytest_mlebench.audit.bundle import write_bundle
from pytest_mlebench.commands.shared import add_competitions_option, registry_of, say
from pytest_mlebench.errors import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a run")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="FILE.zip")
    parser.add_argument("--without-logs", action="store_true", help="leave out logs and traces")
    parser.add_argument(
        "--sign", type=Path, metavar="KEY", help="sign the manifest with ssh-keygen -Y sign"
    )
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Bundle."""
    if args.output.is_dir():
        raise ConfigError(f"--output must be a file, given: {args.output}")
    manifest = write_bundle(
        args.run, args.output, registry_of(args), logs=not args.without_logs, key=args.sign
    )
    size = show_size(args.output.stat().st_size)
    say(f"wrote {args.output}: {len(manifest.files)} files, {size}")
    say(f"sha256 {sha256(args.output)}")
    return 0
