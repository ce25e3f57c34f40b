"""The claim of a bundle that its run was audited: the facts are looked for anew, and compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from pytest_mlebench import __version__
from pytest_mlebench.audit.attempt_files import AttemptFiles
from pytest_mlebench.audit.audit_run import COPIES, facts_inputs
from pytest_mlebench.audit.bundle import Manifest
from pytest_mlebench.audit.claims import SHOWN, Claim, lacks_logs
from pytest_mlebench.audit.facts import look, twins
from pytest_mlebench.audit.quality import figures
from pytest_mlebench.audit.regrade import in_processes
from pytest_mlebench.reports.findings import FACTS, AttemptFindings, Audit, Finding

_BY_PROGRAM = "ruff_per_100_lines"


@dataclass
class _Comparison:
    """What an audit says of attempts, beside what is found now."""

    wrong: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    beyond: set[str] = field(default_factory=set)  # checks that only the author can have made


@dataclass(frozen=True)
class _Facts:
    """What is found of an attempt now."""

    findings: tuple[Finding, ...]
    figures: dict[str, Any]
    digest: str
    inputs: str


def audit_claim(
    attempts: list[AttemptFiles],
    audit: Audit | None,
    manifest: Manifest,
    jobs: int = 1,
    finished: Callable[[AttemptFiles], object] = lambda attempt: None,
) -> Claim:
    """Compare the facts that are claimed of every attempt with those that are found now.

    Whatever is *finished* with an attempt is so beside the search in others.
    """
    copies = twins(attempts)
    try:
        facts = facts_of(attempts, jobs, finished)
    except BrokenProcessPool:
        return Claim("audit", "unchecked", "the process that looked for facts was killed")
    for number, copy in copies.items():
        facts[number] = replace(facts[number], findings=(*facts[number].findings, copy))
    if audit is None:
        worst = [f.what for found in facts for f in found.findings if f.level == "violation"]
        here = f", found here: {worst[0]}" if worst else ""
        return Claim("audit", "unchecked", f"the run was not audited{here}")
    known = {each.key: each for each in audit.attempts}
    done = _Comparison()
    for attempt, found in zip(attempts, facts, strict=True):
        _compare(attempt, known.pop(attempt.result.key, None), found, manifest, done)
    done.wrong += [f"{each.name}: there is no such attempt" for each in known.values()]
    return _claim(done, audit)


def facts_of(
    attempts: list[AttemptFiles],
    jobs: int,
    finished: Callable[[AttemptFiles], object] = lambda attempt: None,
) -> list[_Facts]:
    """Return the facts of all; a process takes a competition at a time, and reads its ids once."""
    groups: dict[str, list[int]] = {}
    for number, attempt in enumerate(attempts):
        groups.setdefault(attempt.result.competition, []).append(number)
    tasks = [[attempts[number] for number in numbers] for numbers in groups.values()]
    facts = chain.from_iterable(in_processes(_facts_of_all, tasks, jobs))
    found = {}
    for number, each in zip(chain(*groups.values()), facts, strict=True):
        found[number] = each
        finished(attempts[number])
    return [found[number] for number in range(len(attempts))]


def _facts_of_all(attempts: list[AttemptFiles]) -> list[_Facts]:
    return [_facts_of(attempt) for attempt in attempts]


def _facts_of(attempt: AttemptFiles) -> _Facts:
    shown = figures(attempt, ruff=False)  # whose figure depends on which ruff there is
    return _Facts(tuple(look(attempt)), shown, attempt.digest, facts_inputs(attempt))


def _claim(done: _Comparison, audit: Audit) -> Claim:
    if done.wrong:
        return Claim("audit", "fails", "; ".join(done.wrong[:SHOWN]))
    if done.unknown:
        return Claim("audit", "unchecked", "; ".join(dict.fromkeys(done.unknown[:SHOWN])))
    text = f"the facts of {len(audit.attempts)} attempts are those claimed"
    if done.beyond:
        text += f"; the author's own word: {', '.join(sorted(done.beyond))}"
    return Claim("audit", "holds", text)


def _compare(
    attempt: AttemptFiles,
    claimed: AttemptFindings | None,
    now: _Facts,
    manifest: Manifest,
    done: _Comparison,
) -> None:
    name = f"{attempt.result.competition} seed {attempt.result.seed}"
    found = list(now.findings)
    facts = None if claimed is None else claimed.check(FACTS)
    if claimed is None or facts is None:
        worst = [finding.what for finding in found if finding.level == "violation"]
        done.wrong += [f"{name}: not claimed: {what}" for what in worst]
        done.unknown.append(f"{name} was not audited")
        return
    done.beyond |= {check.name for check in claimed.checks} - {FACTS, COPIES}
    doubts = _doubts(attempt, manifest)
    theirs = [
        f for check in claimed.checks if check.name in (FACTS, COPIES) for f in check.findings
    ]
    more, less = _beyond(found, theirs), _beyond(theirs, found)
    wrong = [f"{name}: not claimed: {finding.what}" for finding in more]
    other = [f"{name}: not found: {finding.what}" for finding in less]
    if not doubts:
        other += _other_figures(name, now.figures, claimed)
        if claimed.digest != now.digest:
            other.append(f"{name}: other files were audited")
        elif facts.inputs != now.inputs:
            doubts = [f"{name}: audited beside other data than those here"]
    if manifest.plugin_version != __version__:
        done.unknown += [*wrong, *other]
    else:
        done.wrong += wrong if doubts else [*wrong, *other]
    done.unknown += doubts


def _doubts(attempt: AttemptFiles, manifest: Manifest) -> list[str]:
    """Return why not all facts can be found here."""
    found = []
    if attempt.sample is None:
        found.append(f"{attempt.result.competition} is not prepared here")
    if lacks_logs(attempt.folder, manifest):
        found.append("the logs are not in the bundle")
    if manifest.plugin_version != __version__:
        found.append(f"audited by version {manifest.plugin_version}, this is {__version__}")
    return found


def _beyond(some: list[Finding], others: list[Finding]) -> list[Finding]:
    """Return the findings that others do not have, to the last letter."""
    known = {_plain(finding) for finding in others}
    return [finding for finding in some if _plain(finding) not in known]


def _plain(finding: Finding) -> str:
    return json.dumps(finding.to_dict(), sort_keys=True)


def _other_figures(name: str, mine: dict[str, Any], claimed: AttemptFindings) -> list[str]:
    theirs = {key: value for key, value in claimed.figures.items() if key != _BY_PROGRAM}
    wrong = [key for key in dict.fromkeys((*mine, *theirs)) if mine.get(key) != theirs.get(key)]
    return [f"{name}: other figures: {', '.join(wrong)}"] if wrong else []
