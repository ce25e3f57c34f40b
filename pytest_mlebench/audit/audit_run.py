"""A run audited, attempt by attempt and check by check; only what is out of date is made anew."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_mlebench import __version__
from pytest_mlebench._files import sha256
from pytest_mlebench.audit.attempt_files import AttemptFiles
from pytest_mlebench.audit.facts import look, twins
from pytest_mlebench.audit.quality import figures
from pytest_mlebench.layout import AttemptFolder, RunFolder
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.findings import (
    FACTS,
    AttemptFindings,
    Audit,
    CheckFindings,
    Finding,
    read_audit,
    write_audit,
)
from pytest_mlebench.reports.results import ItemKey, Result

COPIES = "copies"  # within the run: made anew every time, since other attempts come and go


@dataclass(frozen=True)
class AttemptCheck:
    """A check of attempts; its name tells against what, its inputs what it looks at there."""

    name: str
    run: Callable[[AttemptFiles], Sequence[Finding]]
    inputs: Callable[[AttemptFiles], str]  # beside the attempt's own files
    facts: Callable[[], Sequence[Mapping[str, Any]]] = tuple  # who judged, and what that took


def audit_run(
    run: Path,
    results: Sequence[Result],
    registry: Registry,
    store: Path,
    *,
    further: Sequence[AttemptCheck] = (),
    progress: Callable[[int, int], object] = lambda done, of: None,
    notice: Callable[[str], object] = lambda sentence: None,
) -> Audit:
    """Audit every attempt of a run and write audit.json after each, so that nothing is lost.

    What other checks have found in the same files before is kept, whoever asks for what now.
    """
    path = RunFolder(run).audit
    before = read_audit(path) or Audit((), __version__)
    known = {attempt.key: attempt for attempt in before.attempts}
    attempts = files_of(results, registry, store)
    copies = twins(attempts)
    done: list[AttemptFindings] = []
    for number, attempt in enumerate(attempts):
        kept = _of_same_files(known, attempt, further, notice)
        found = _look(attempt, kept, further)
        done.append(_with_copies(found, copies.get(number)))
        audit = Audit(tuple(done), __version__, _judges(before, further))
        write_audit(path, replace(audit, attempts=(*done, *known.values())))
        progress(number + 1, len(attempts))
    audit = Audit(tuple(done), __version__, _judges(before, further))
    write_audit(path, audit)
    return audit


def files_of(results: Sequence[Result], registry: Registry, store: Path) -> list[AttemptFiles]:
    """Return the files of every attempt that some results tell of."""
    return [_files(result, registry, store) for result in results if result.run is not None]


def facts_inputs(attempt: AttemptFiles) -> str:
    """Return a sum of what the facts depend on beside the attempt: sample, leaks, version."""
    issues = () if attempt.competition is None else attempt.competition.known_issues
    markers = [marker for issue in issues if issue.is_leak for marker in issue.markers]
    sample = "none" if attempt.sample is None else sha256(attempt.sample)
    return sum_of(__version__, sample, *markers)


def sum_of(*parts: str) -> str:
    """Return a short sum of some texts."""
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:16]


_FACTS = AttemptCheck(FACTS, look, facts_inputs)


def _of_same_files(
    known: dict[ItemKey, AttemptFindings],
    attempt: AttemptFiles,
    further: Sequence[AttemptCheck],
    notice: Callable[[str], object],
) -> AttemptFindings:
    """Take what was found before in the files that are there now; of others, report the loss."""
    empty = AttemptFindings(attempt.result.key, attempt.digest)
    kept = known.pop(attempt.result.key, empty)
    if kept.digest == attempt.digest:
        return kept
    made = {FACTS, COPIES, *(check.name for check in further)}
    if lost := [check.name for check in kept.checks if check.name not in made]:
        notice(f"{kept.name}: its files have changed, ask again for: {', '.join(lost)}")
    return empty


def _look(
    attempt: AttemptFiles, kept: AttemptFindings, further: Sequence[AttemptCheck]
) -> AttemptFindings:
    """Make the checks whose inputs are not those they were made with."""
    checks = {check.name: check for check in kept.checks}
    shown = kept.figures
    for check in (_FACTS, *further):
        inputs, before = check.inputs(attempt), checks.get(check.name)
        if before is None or before.inputs != inputs:
            checks[check.name] = CheckFindings(check.name, inputs, tuple(check.run(attempt)))
            shown = figures(attempt) if check is _FACTS else shown
    return replace(kept, checks=tuple(checks.values()), figures=shown)


def _judges(before: Audit, further: Sequence[AttemptCheck]) -> tuple[Mapping[str, Any], ...]:
    """Return what judges have used: of those that are asked now all they tell, of others as was."""
    now = [facts for check in further for facts in check.facts()]
    models = {facts.get("model") for facts in now}
    return (*(judge for judge in before.judges if judge.get("model") not in models), *now)


def _with_copies(found: AttemptFindings, copy: Finding | None) -> AttemptFindings:
    """Return the findings with that of a twin as it is now: others may have come or gone."""
    rest = [check for check in found.checks if check.name != COPIES]
    twin = [] if copy is None else [CheckFindings(COPIES, "", (copy,))]
    return replace(found, checks=(*rest, *twin))


def _files(result: Result, registry: Registry, store: Path) -> AttemptFiles:
    competition = (
        registry.load(result.competition) if result.competition in registry.ids() else None
    )
    public = store / result.competition / "prepared" / "public"
    return AttemptFiles(
        result=result,
        folder=AttemptFolder(Path(result.run or "")),
        competition=competition,
        public=public if public.is_dir() else None,
    )
