"""Look for what is suspicious in a run: findings per attempt, with evidence, in audit.json.

A finding never changes a grade. Levels: info (worth knowing, allowed), suspicious (somebody should
look), violation (flagged: a second rate counts such attempts as no medal). What was looked at
already is not looked at again unless it, or what it is compared with, has changed; --anew does.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_mlebench._plain_text import one_line
from pytest_mlebench.audit.audit_run import AttemptCheck, audit_run, files_of, sum_of
from pytest_mlebench.audit.comparisons import is_own, notebook_check, others_work, run_check
from pytest_mlebench.audit.judge import Judge
from pytest_mlebench.audit.model_endpoint import Endpoint
from pytest_mlebench.audit.plagiarism import read_sources, require_library
from pytest_mlebench.audit.votes import VoteLog
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
from pytest_mlebench.reports.findings import audit_lines
from pytest_mlebench.reports.report import Report
from pytest_mlebench.reports.results import Result

SHOWN_IDS = 3
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
        help="compare code and submissions with those of another run, or of the other agents of "
        "this one; repeatable",
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
    further = [*_comparisons(args, report.results), *_judges(args, folder)]
    if args.anew:
        folder.audit.unlink(missing_ok=True)
    audit = audit_run(
        args.run,
        report.results,
        registry,
        store_folder(args),
        further=further,
        progress=_progress,
        notice=_notice,
    )
    if args.json:
        say(json.dumps(audit.to_dict(), indent=1, ensure_ascii=False))
    else:
        for line in audit_lines(audit):
            say(line)
        for name, rate in Report.from_run(args.run, registry).without_flagged.items():
            say(f"any medal without flagged attempts, {name}: {rate.text()}")
        for judge in audit.judges:
            say("judge: " + ", ".join(f"{key} {value}" for key, value in judge.items()))
        say(f"wrote {folder.audit}")
    levels = {None: (), "violation": ("violation",), "suspicious": ("suspicious", "violation")}
    return 1 if any(each.level in levels[args.fail_on] for each in audit.attempts) else 0


def _comparisons(args: argparse.Namespace, results: Sequence[Result]) -> list[AttemptCheck]:
    """Return the comparisons that were asked for, each a check of its own."""
    if args.notebooks is None and not args.against:
        return []
    require_library()
    notebooks = [] if args.notebooks is None else [_notebooks(args, results)]
    return [*notebooks, *(_against(args, path, results) for path in args.against)]


def _notebooks(args: argparse.Namespace, results: Sequence[Result]) -> AttemptCheck:
    """Return the comparison with notebooks; where there are none at all it is a mistake."""
    ids = sorted({result.competition for result in results})
    shown = ", ".join(ids[:SHOWN_IDS]) + (" …" if len(ids) > SHOWN_IDS else "")
    if args.notebooks == IN_STORE:
        store = store_folder(args)
        folders = {name: store / name / FOLDER for name in ids}
        if not any(map(read_sources, folders.values())):
            raise ConfigError(
                f"--notebooks: there are none of {shown} in {store}: "
                f"pytest-mlebench kernels {ids[0] if ids else 'ID'} --fetch"
            )
        return notebook_check("in the store", folders.__getitem__)
    root = Path(args.notebooks)
    if not root.is_dir():
        raise ConfigError(f"--notebooks must be a directory, given: {root}")
    folders = {name: root / name for name in ids}
    if not any(map(read_sources, folders.values())):
        raise ConfigError(
            f"--notebooks={root}: has no .ipynb or .py files in a folder named after a "
            f"competition of the run: {shown}"
        )
    return notebook_check(_named(root), folders.__getitem__)


def _against(args: argparse.Namespace, path: Path, results: Sequence[Result]) -> AttemptCheck:
    """Return the comparison with a run, which may be this one if it has several agents."""
    registry, store = registry_of(args), store_folder(args)
    within = path.resolve() == args.run.resolve()
    if within and len({result.agent for result in results}) < 2:
        raise ConfigError(
            f"--against must be another run, or this one if it has several agents, given: {path}"
        )
    theirs = results if within else Report.from_run(path, registry).results
    attempts = files_of(theirs, registry, store)
    works = [others_work(attempt, "" if within else path.name) for attempt in attempts]
    agents = {result.agent for result in results}
    own = [] if within else [work for work in works if any(is_own(work, name) for name in agents)]
    if own:
        number = f"{len(own)} attempt{'' if len(own) == 1 else 's'}"
        _notice(
            f"--against {path}: {number} of {', '.join(sorted({work.agent for work in own}))}: "
            "not compared with attempts of the same agent, whose own code is no copy"
        )
    return run_check("other agents" if within else _named(path), works, within=within)


def _named(path: Path) -> str:
    """Return a name for a folder that tells it from others, and not where it is."""
    return f"{path.absolute().name} {sum_of(str(path.resolve()))[:8]}"


def _judges(args: argparse.Namespace, folder: RunFolder) -> list[AttemptCheck]:
    if bool(args.judge_url) != bool(args.judge_model):
        raise ConfigError("--judge-url and --judge-model go together")
    if not args.judge_url:
        return []
    log = VoteLog(folder.votes)
    endpoint = Endpoint.of(args.judge_url, args.judge_model, args.judge_key)
    judge = Judge(endpoint, args.judge_votes, log)
    if args.anew:
        log.begin_anew()
    return [judge.check]


def _notice(sentence: str) -> None:
    sys.stderr.write(f"{one_line(sentence)}\n")


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\raudited {done} of {of}{'' if done < of else chr(10)}")
