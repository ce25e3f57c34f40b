"""A run audited, attempt by attempt; what was looked at already is not looked at again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class FurtherCheck:
    """A check beyond the facts, such as notebooks or a judge; its name tells all its parameters."""

    name: str
    run: Callable[[AttemptFiles], Sequence[Finding]]
    facts: Callable[[], Mapping[str, Any]] = dict  # who judged, and what that took so far


def audit_run(
    run: Path,
    results: Sequence[Result],
    registry: Registry,
    store: Path,
    *,
    further: Sequence[FurtherCheck] = (),
    progress: Callable[[int, int], object] = lambda done, of: None,
) -> Audit:
    """Audit every attempt of a run and write audit.json after each, so that nothing is lost."""
    path = RunFolder(run).audit
    before = read_audit(path)
    if before is not None and before.plugin_version != __version__:
        before = None
    known = {} if before is None else {attempt.key: attempt for attempt in before.attempts}
    attempts = files_of(results, registry, store)
    copies = twins(attempts)
    audit = Audit((), __version__)
    for number, attempt in enumerate(attempts):
        kept = known.pop(attempt.result.key, None)
        if kept is None or not _is_enough(kept, attempt, further):
            kept = _look(attempt, further)
        done = (*audit.attempts, _with_copies(kept, copies.get(number)))
        judge = _added(before, further)
        audit = Audit(done, __version__, judge)
        write_audit(path, replace(audit, attempts=(*done, *known.values())))
        progress(number + 1, len(attempts))
    write_audit(path, audit)
    return audit


def files_of(results: Sequence[Result], registry: Registry, store: Path) -> list[AttemptFiles]:
    """Return the files of every attempt that some results tell of."""
    return [_files(result, registry, store) for result in results if result.run is not None]


def _look(attempt: AttemptFiles, further: Sequence[FurtherCheck]) -> AttemptFindings:
    more = [finding for check in further for finding in check.run(attempt)]
    return AttemptFindings(
        key=attempt.result.key,
        digest=_digest(attempt, further),
        findings=(*look(attempt), *more),
        figures=figures(attempt),
    )


def _digest(attempt: AttemptFiles, further: Sequence[FurtherCheck]) -> str:
    return " ".join((attempt.digest, *sorted(check.name for check in further)))


def _is_enough(
    kept: AttemptFindings, attempt: AttemptFiles, further: Sequence[FurtherCheck]
) -> bool:
    """Tell whether the same files were looked at in all the ways that are wanted now."""
    digest, *names = kept.digest.split(" ")
    return digest == attempt.digest and {check.name for check in further} <= set(names)


def _added(before: Audit | None, further: Sequence[FurtherCheck]) -> dict[str, Any]:
    """Return what judges have used, in this session and in those before it."""
    facts = {key: value for check in further for key, value in check.facts().items()}
    earlier = {} if before is None else before.judge
    if not facts or facts.get("model") != earlier.get("model"):
        return facts or dict(earlier)
    counts = ("calls", "input_tokens", "output_tokens", "usd")
    return facts | {key: facts[key] + earlier.get(key, 0) for key in counts if key in facts}


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
