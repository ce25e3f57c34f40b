"""Look for what is suspicious in a run: findings per attempt, with evidence, in audit.json.

A finding never changes a grade. Levels: info (worth knowing, allowed), suspicious (somebody should
look), violation (flagged: a second rate counts such attempts as no medal). What was looked at
already is not looked at again; --anew does.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

from pytest_mlebench.audit.attempt_files import AttemptFiles
from pytest_mlebench.audit.audit_run import FurtherCheck, audit_run, files_of
from pytest_mlebench.audit.judge import Judge
from pytest_mlebench.audit.model_endpoint import Endpoint
from pytest_mlebench.audit.plagiarism import CodeSource, compare, read_sources, require_library
from pytest_mlebench.commands.shared import (
    add_competitions_option,
    add_data_dir_option,
    registry_of,
    say,
    store_folder,
)
from pytest_mlebench.errors import ConfigError
from pytest_mlebench.kaggle.kernels import FOLDER
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.reports.findings import Finding, audit_lines
from pytest_mlebench.reports.report import Report

IN_STORE = "store"
KEY_VARIABLE = "JUDGE_API_KEY"


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
    parser.add_argument(
        "--notebooks",
        metavar="DIR",
        nargs="?",
        const=IN_STORE,
        help="compare the code with notebooks: those that 'kernels --fetch' has put into the "
        "store, or those in DIR/ID",
    )
    parser.add_argument(
        "--against",
        metavar="RUN",
        type=Path,
        action="append",
        default=[],
        help="compare the code with that of other runs; repeatable",
    )
    parser.add_argument("--judge-url", metavar="URL", help="a model that reads logs and code")
    parser.add_argument("--judge-model", metavar="NAME", help="its name there")
    parser.add_argument(
        "--judge-votes", type=int, default=3, metavar="N", help="votes (default: 3)"
    )
    parser.add_argument(
        "--judge-key",
        metavar="VARIABLE",
        default=KEY_VARIABLE,
        help=f"the environment variable with its key (default: {KEY_VARIABLE})",
    )
    add_data_dir_option(parser)
    add_competitions_option(parser)


def run(args: argparse.Namespace) -> int:
    """Audit."""
    registry, folder = registry_of(args), RunFolder(args.run)
    report = Report.from_run(args.run, registry)
    further = [*_comparisons(args), *_judges(args)]
    if args.anew:
        folder.audit.unlink(missing_ok=True)
    audit = audit_run(
        args.run,
        report.results,
        registry,
        store_folder(args),
        further=further,
        progress=_progress,
    )
    if args.json:
        say(json.dumps(audit.to_dict(), indent=1, ensure_ascii=False))
    else:
        for line in audit_lines(audit):
            say(line)
        for name, rate in Report.from_run(args.run, registry).without_flagged.items():
            say(f"any medal without flagged attempts, {name}: {rate.text()}")
        if audit.judge:
            say("judge: " + ", ".join(f"{key} {value}" for key, value in audit.judge.items()))
        say(f"wrote {folder.audit}")
    levels = {None: (), "violation": ("violation",), "suspicious": ("suspicious", "violation")}
    return 1 if any(each.level in levels[args.fail_on] for each in audit.attempts) else 0


def _comparisons(args: argparse.Namespace) -> list[FurtherCheck]:
    """Return the comparisons of code that were asked for."""
    if args.notebooks is None and not args.against:
        return []
    require_library()
    others = _code_of_runs(args)
    store = store_folder(args)

    def sources(attempt: AttemptFiles) -> tuple[CodeSource, ...]:
        name = attempt.result.competition
        folder = store / name / FOLDER if args.notebooks == IN_STORE else None
        if args.notebooks not in (None, IN_STORE):
            folder = Path(args.notebooks) / name
        return (*(read_sources(folder) if folder is not None else ()), *others.get(name, ()))

    def check(attempt: AttemptFiles) -> list[Finding]:
        return compare(attempt, sources(attempt))

    named = [str(args.notebooks), *(str(path.absolute()) for path in args.against)]
    digest = hashlib.sha256("\0".join(named).encode()).hexdigest()[:8]
    return [FurtherCheck(f"code-{digest}", check)]


def _code_of_runs(args: argparse.Namespace) -> dict[str, list[CodeSource]]:
    """Return the code of other runs' attempts by competition."""
    registry = registry_of(args)
    found: dict[str, list[CodeSource]] = {}
    for path in args.against:
        if path.resolve() == args.run.resolve():
            raise ConfigError(f"--against must be another run, given: {path}")
        results = Report.from_run(path, registry).results
        for attempt in files_of(results, registry, store_folder(args)):
            result = attempt.result
            for text in attempt.code:
                name = f"{path.name} {result.agent} seed {result.seed} {text.place}"
                found.setdefault(result.competition, []).append(CodeSource(name, text.text))
    return found


def _judges(args: argparse.Namespace) -> list[FurtherCheck]:
    if bool(args.judge_url) != bool(args.judge_model):
        raise ConfigError("--judge-url and --judge-model go together")
    if not args.judge_url:
        return []
    judge = Judge(Endpoint.of(args.judge_url, args.judge_model, args.judge_key), args.judge_votes)
    name = f"judge-{args.judge_model}-{args.judge_votes}".replace(" ", "_")
    return [FurtherCheck(name, judge, judge.facts)]


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\raudited {done} of {of}{'' if done < of else chr(10)}")
