"""Look for what is suspicious in a run: findings per attempt, with evidence, in audit.json.

A finding never changes a grade. Levels: info (worth knowing, allowed), suspicious (somebody should
look), violation (flagged: a second rate counts such attempts as no medal). What was looked at
already is not looked at again; --anew does.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from pytest_mlebench.audit.audit_run import audit_run
from pytest_mlebench.commands.shared import (
    add_competitions_option,
    add_data_dir_option,
    registry_of,
    say,
    store_folder,
)
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.reports.findings import audit_lines
from pytest_mlebench.reports.report import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a run")
    parser.add_argument("--anew", action="store_true", help="look at everything again")
    parser.add_argument(
        "--fail-on",
        choices=("suspicious", "violation"),
        help="exit with status 1 if there is such a finding",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_data_dir_option(parser)
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Audit."""
    registry, folder = registry_of(args), RunFolder(args.run)
    report = Report.from_run(args.run, registry)
    if args.anew:
        folder.audit.unlink(missing_ok=True)
    audit = audit_run(args.run, report.results, registry, store_folder(args), progress=_progress)
    if args.json:
        say(json.dumps(audit.to_dict(), indent=1, ensure_ascii=False))
    else:
        for line in audit_lines(audit):
            say(line)
        for name, rate in Report.from_run(args.run, registry).without_flagged.items():
            say(f"any medal without flagged attempts, {name}: {rate.text()}")
        say(f"wrote {folder.audit}")
    levels = {None: (), "violation": ("violation",), "suspicious": ("suspicious", "violation")}
    return 1 if any(each.level in levels[args.fail_on] for each in audit.attempts) else 0


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\raudited {done} of {of}{'' if done < of else chr(10)}")
