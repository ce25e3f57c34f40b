"""Verify a bundle: hashes, signature, every score graded anew, rates, conditions, texts, audit.

A verdict is printed for every claim. The exit status is 0 only if all of them hold, 1 if one fails,
3 if some could not be checked, such as scores whose data are not prepared here. What was
interrupted continues where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from pytest_mlebench._plain_text import one_line
from pytest_mlebench.attempts.grading_process import score_apart, start_early
from pytest_mlebench.audit.claims import exit_status
from pytest_mlebench.audit.verify import Request, verify
from pytest_mlebench.commands.shared import (
    add_competitions_option,
    add_data_dir_option,
    registry_of,
    say,
    store_folder,
)
from pytest_mlebench.errors import ConfigError

MARKS = {"holds": "ok", "fails": "FAILED", "unchecked": "not checked"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("bundle", type=Path, metavar="FILE.zip", help="what bundle has written")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="how many grade at once"
    )
    parser.add_argument(
        "--signers", type=Path, metavar="FILE", help="allowed signers, as ssh-keygen -Y verify has"
    )
    parser.add_argument("--signer", default="", metavar="WHO", help="whose signature is expected")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_data_dir_option(parser)
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Verify."""
    if args.jobs < 1:
        raise ConfigError(f"--jobs must be positive, given: {args.jobs}")
    if bool(args.signers) != bool(args.signer):
        raise ConfigError("--signers and --signer go together: a file, and who in it has signed")
    request = Request(
        bundle=args.bundle,
        registry=registry_of(args),
        store=store_folder(args),
        score=score_apart,
        start_early=start_early,
        jobs=args.jobs,
        signers=args.signers,
        signer=args.signer,
        progress=_progress,
    )
    claims = verify(request)
    status = exit_status(claims)
    if args.json:
        data = {"verified": status == 0, "claims": [claim.to_dict() for claim in claims]}
        say(json.dumps(data, indent=1, ensure_ascii=False))
        return status
    for claim in claims:
        say(f"{MARKS[claim.verdict]:<12}{one_line(claim.name)}: {one_line(claim.text)}")
    counts = {
        MARKS[verdict]: sum(claim.verdict == verdict for claim in claims) for verdict in MARKS
    }
    say(", ".join(f"{number} {mark}" for mark, number in counts.items() if number))
    return status


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\rgraded {done} of {of}{'' if done < of else chr(10)}")
