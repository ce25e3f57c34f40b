"""A run that was really graded, its bundle, and hands that tamper with it."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from attempt_folders import AGENT, write_attempt, write_run
from reporting import write_competition, write_submission

from pytest_mlebench.attempts.grading_process import score_apart, start_early
from pytest_mlebench.attempts.record import Conditions
from pytest_mlebench.audit.audit_run import AttemptCheck, audit_run
from pytest_mlebench.audit.bundle import MANIFEST, Manifest, _add
from pytest_mlebench.audit.claims import Claim
from pytest_mlebench.audit.verify import Request, verify
from pytest_mlebench.grade import Snapshot, grade_submission
from pytest_mlebench.layout import AttemptFolder
from pytest_mlebench.limits import STANDARD
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.findings import Audit
from pytest_mlebench.reports.report import Report
from pytest_mlebench.sandbox.kept_files import sums_of
from pytest_mlebench.store.store import Store

Edit = Callable[[dict[str, bytes]], object]


@dataclass(frozen=True)
class GradedRun:
    """A run of two seeds of one competition, and where its data are."""

    path: Path
    registry: Registry
    store: Path

    def verify(self, bundle: Path, **changes: object) -> list[Claim]:
        """Verify a bundle with the data at hand."""
        request = Request(bundle, self.registry, self.store, score_apart, start_early)
        return verify(replace(request, **changes))  # type: ignore[arg-type]

    def audit(self, *further: AttemptCheck) -> Audit:
        """Audit the run with the data at hand."""
        results = Report.from_run(self.path, self.registry).results
        return audit_run(self.path, results, self.registry, self.store, further=further)


def graded_run(folder: Path, errors: tuple[float, ...] = (0.5, 2.5)) -> GradedRun:
    """Make a run whose seeds have submissions with some errors, graded as a session would."""
    registry = Registry([write_competition(folder / "competitions")])
    store = Store(folder / "store")
    dataset = store.ensure(registry.load("tiny"))
    keys = [("tiny", seed) for seed in range(len(errors))]
    disclosure = Disclosure(agent=AGENT, splits=(), seeds=len(errors))
    run = write_run(folder / "run", *keys, disclosure=disclosure)
    for seed, error in enumerate(errors):
        attempt = run.seed("tiny", seed).attempt(1)
        (attempt.path / "artefacts" / "code").mkdir(parents=True)
        (attempt.path / "artefacts" / "code" / "main.py").write_text("print('learn')\n")
        attempt.log.write_text(f"seed {seed}\n")
        write_submission(attempt.submission, error)
        snapshot = _keep(attempt, error + 1)
        grade = grade_submission(dataset.competition, attempt.submission, dataset.private)
        kept = grade_submission(
            dataset.competition, attempt.snapshot(snapshot.sha256), dataset.private
        )
        conditions = Conditions(sandbox="process", network="open", limits=STANDARD)
        write_attempt(
            run,
            *("tiny", seed, "graded"),
            grade=grade,
            conditions=conditions,
            snapshots=(snapshot.graded(kept),),
            sums=sums_of(attempt),
        )
    return GradedRun(run.path, registry, store.root)


def _keep(attempt: AttemptFolder, error: float) -> Snapshot:
    """Keep a submission that was on the way to the last."""
    attempt.snapshots.mkdir()
    first = attempt.snapshots / "first"
    write_submission(first, error)
    content = first.read_bytes()
    snapshot = Snapshot(60.0, hashlib.sha256(content).hexdigest(), len(content))
    first.rename(attempt.snapshot(snapshot.sha256))
    return snapshot


def tampered(bundle: Path, target: Path, edit: Edit, *, honest_sums: bool = True) -> Path:
    """Write a bundle whose files were edited; a forger also puts the sums right."""
    with zipfile.ZipFile(bundle) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    edit(files)
    old = Manifest.from_dict(json.loads(files.pop(MANIFEST)), MANIFEST)
    with zipfile.ZipFile(target, "w") as archive:
        sums = {name: _add(archive, name, content) for name, content in files.items()}
        sums = {name: each for name, each in sums.items() if not name.startswith(MANIFEST)}
        manifest = replace(old, files=sums) if honest_sums else old
        _add(archive, MANIFEST, json.dumps(manifest.to_dict(), indent=1).encode())
    return target


def failed(claims: list[Claim]) -> dict[str, str]:
    """Return the names and texts of the claims that do not hold."""
    return {claim.name: claim.text for claim in claims if claim.verdict == "fails"}


def edit_json(name: str, change: Callable[[dict[str, object]], object]) -> Edit:
    """Return the edit of a JSON file in a bundle."""

    def edit(files: dict[str, bytes]) -> None:
        data = json.loads(files[name])
        change(data)
        files[name] = json.dumps(data, indent=1).encode()

    return edit
