"""A run audited, attempt by attempt; what was looked at already is not looked at again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_mlebench import __version__
from pytest_mlebench.audit.attempt_files import AttemptFiles
from pytest_mlebench.audit.facts import look, twins
from pytest_mlebench.audit.quality import figures
from pytest_mlebench.layout import AttemptFolder, RunFolder
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.findings import (
    AttemptFindings,
    Audit,
    Finding,
    read_audit,
    write_audit,
)
from pytest_mlebench.reports.results import Result

Extra = Callable[[AttemptFiles], Sequence[Finding]]  # further checks: notebooks, a judge


def audit_run(
    run: Path,
    results: Sequence[Result],
    registry: Registry,
    store: Path,
    *,
    extra: Sequence[Extra] = (),
    progress: Callable[[int, int], object] = lambda done, of: None,
) -> Audit:
    """Audit every attempt of a run and write audit.json after each, so that nothing is lost."""
    path = RunFolder(run).audit
    before = read_audit(path)
    known = {} if before is None or before.plugin_version != __version__ else _by_key(before)
    attempts = [_files(result, registry, store) for result in results if result.run is not None]
    copies = twins(attempts)
    done: list[AttemptFindings] = []
    for number, attempt in enumerate(attempts):
        kept = known.get(attempt.result.key)
        if kept is None or kept.digest != attempt.digest or extra:
            kept = AttemptFindings(
                key=attempt.result.key,
                digest=attempt.digest,
                findings=(*look(attempt), *(f for check in extra for f in check(attempt))),
                figures=figures(attempt),
            )
        done.append(_with_copies(kept, copies.get(number)))
        progress(number + 1, len(attempts))
        write_audit(path, Audit(tuple(done), __version__))
    audit = Audit(tuple(done), __version__)
    write_audit(path, audit)
    return audit


def _by_key(audit: Audit) -> dict[object, AttemptFindings]:
    return {attempt.key: attempt for attempt in audit.attempts}


def _with_copies(found: AttemptFindings, copy: Finding | None) -> AttemptFindings:
    """Return the findings with that of a twin as it is now: others may have come or gone."""
    rest = [f for f in found.findings if not (f.check == "submission" and f.level == "suspicious")]
    return replace(found, findings=(*rest, *([] if copy is None else [copy])))


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
