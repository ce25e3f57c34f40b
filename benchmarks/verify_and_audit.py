"""What it takes to verify a bundle and to audit a run, as ratios and per attempt.

    python benchmarks/verify_and_audit.py [--competitions 75] [--seeds 3] [--rows 50000] [--jobs 2]
                                          [--short] [--check]

A run of as many competitions and seeds, with ordinary code and logs, is audited without a judge,
bundled and verified. The time to verify, but for the facts of the audit, which are looked for
again, is given as a multiple of the time to grade the same submissions with as many processes; what
the facts take is given by itself, per attempt. ``--short`` takes 6 competitions. ``--check`` fails
beyond the targets: 1.2 times the grading, 2 s per attempt at the median.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import zipfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import bundles
import reporting
from attempt_folders import AGENT, write_attempt, write_run

from pytest_mlebench._files import sha256
from pytest_mlebench.attempts.grading_process import score_apart, start_early
from pytest_mlebench.attempts.record import Conditions
from pytest_mlebench.audit.audit_claim import audit_claim
from pytest_mlebench.audit.audit_run import audit_run, files_of
from pytest_mlebench.audit.bundle import MANIFEST, read_manifest, write_bundle
from pytest_mlebench.audit.claims import exit_status
from pytest_mlebench.audit.regrade import Notes, Task, grading_processes, regrade
from pytest_mlebench.grade import grade_submission
from pytest_mlebench.layout import RunFolder
from pytest_mlebench.limits import STANDARD
from pytest_mlebench.registry import Registry
from pytest_mlebench.reports.disclosure import Disclosure
from pytest_mlebench.reports.report import Report
from pytest_mlebench.sandbox.kept_files import sums_of
from pytest_mlebench.store.store import Store

TARGET_RATIO, TARGET_SECONDS = 1.2, 2.0
SHORT = 6
CODE = Path(__file__).parents[1] / "pytest_mlebench" / "agents" / "baseline"
LOG_LINES = 2_000


def main() -> int:
    """Measure, print, and judge if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--competitions", type=int, default=75)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--short", action="store_true", help=f"{SHORT} competitions")
    parser.add_argument("--check", action="store_true", help="fail beyond the targets")
    arguments = parser.parse_args()
    number = SHORT if arguments.short else arguments.competitions
    with tempfile.TemporaryDirectory() as name:
        run = large_run(Path(name), number, arguments.seeds, arguments.rows)
        seconds = audit(run)
        ratio = verify(run, Path(name) / "b.zip", arguments.jobs)
    good = ratio <= TARGET_RATIO and seconds <= TARGET_SECONDS
    return int(arguments.check and not good)


def large_run(folder: Path, competitions: int, seeds: int, rows: int) -> bundles.GradedRun:
    """Return a run whose submissions have many rows and whose code and logs are ordinary."""
    reporting.PREPARE = reporting.PREPARE.replace("range(100)", f"range({rows + 80})")
    names = [f"tiny-{number}" for number in range(competitions)]
    for name in names:
        reporting.write_competition(folder / "competitions", name)
    registry, store = Registry([folder / "competitions"]), Store(folder / "store")
    keys = [(name, seed) for name in names for seed in range(seeds)]
    disclosure = Disclosure(agent=AGENT, splits=(), seeds=seeds)
    run = write_run(folder / "run", *keys, disclosure=disclosure)
    for name, seed in keys:
        attempt(run, store, registry, name, seed, rows)
    return bundles.GradedRun(run.path, registry, store.root)


def attempt(
    run: RunFolder, store: Store, registry: Registry, name: str, seed: int, rows: int
) -> None:
    """Write one attempt, graded."""
    dataset = store.ensure(registry.load(name))
    folder = run.seed(name, seed).attempt(1)
    code = folder.path / "artefacts" / "code"
    code.mkdir(parents=True)
    for path in CODE.glob("*.py"):
        (code / path.name).write_text(path.read_text())
    folder.log.write_text("".join(f"{name} {seed}: epoch {n}\n" for n in range(LOG_LINES)))
    error = 0.5 + seed / 10 + len(name) / 100
    lines = (f"{n},{n / 10 + error}\n" for n in range(80, rows + 80))
    folder.submission.write_text("id,y\n" + "".join(lines))
    grade = grade_submission(dataset.competition, folder.submission, dataset.private)
    conditions = Conditions(sandbox="process", network="open", limits=STANDARD)
    write_attempt(
        run, name, seed, "graded", grade=grade, conditions=conditions, sums=sums_of(folder)
    )


def verify(run: bundles.GradedRun, bundle: Path, jobs: int) -> float:
    """Return the time to verify as a multiple of the time to grade."""
    roots = run.registry.roots[1:]
    tasks = [
        Task(str(path), path.parts[-4], path, run.store, roots, score_apart)
        for path in sorted(run.path.rglob("submission.csv"))
    ]
    write_bundle(run.path, bundle, run.registry)
    started = time.perf_counter()
    with grading_processes(jobs, start_early) as pool:
        regrade(tasks, pool, Notes(None), lambda done, of: None)
    grading = time.perf_counter() - started
    started = time.perf_counter()
    claims = run.verify(bundle, jobs=jobs)
    verifying = time.perf_counter() - started
    if exit_status(claims) != 0:
        raise SystemExit(f"{[claim for claim in claims if claim.verdict != 'holds'][:3]}")
    facts = _facts_seconds(run, bundle, jobs)
    ratio = (verifying - facts) / grading
    print(
        f"verify: {verifying:.1f} s for {len(tasks)} submissions with {jobs} processes, of them "
        f"{facts:.1f} s for facts ({facts / len(tasks):.2f} s per attempt); the rest is "
        f"{ratio:.2f} times the grading alone, {grading:.1f} s (target {TARGET_RATIO}), "
        f"with the facts {verifying / grading:.2f} times"
    )
    return ratio


def _facts_seconds(run: bundles.GradedRun, bundle: Path, jobs: int) -> float:
    """Return what it takes to look for the facts again."""
    with zipfile.ZipFile(bundle) as archive, tempfile.TemporaryDirectory() as name:
        archive.extract(MANIFEST, name)
        manifest = read_manifest(Path(name))
    report = Report.from_run(run.path, run.registry)
    attempts = [
        replace(attempt, known_sum=sha256(attempt.folder.submission))  # as they are when unpacked
        for attempt in files_of(report.results, run.registry, run.store)
    ]
    started = time.perf_counter()
    claim = audit_claim(attempts, report.audit, manifest, jobs)
    if claim.verdict != "holds":
        raise SystemExit(claim.text)
    return time.perf_counter() - started


def audit(run: bundles.GradedRun) -> float:
    """Return the median of the seconds per attempt."""
    moments = [time.perf_counter()]
    audit_run(
        run.path,
        Report.from_run(run.path, run.registry).results,
        run.registry,
        run.store,
        progress=lambda done, of: moments.append(time.perf_counter()),
    )
    median = statistics.median(b - a for a, b in pairwise(moments))
    print(f"audit: {median:.2f} s per attempt at the median (target {TARGET_SECONDS:g})")
    return median


if __name__ == "__main__":
    sys.exit(main())
