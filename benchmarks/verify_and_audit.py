"""What it takes to verify a bundle and to audit a run, as ratios and per attempt.

    python benchmarks/verify_and_audit.py [--attempts 24] [--rows 50000] [--check]

A run with as many attempts is graded, bundled and verified with one process; the time to verify is
given as a multiple of the time to grade the same submissions. Then the run is audited without a
judge. ``--check`` fails beyond the targets: 1.2 times the grading, 2 s per attempt at the median.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import bundles
import reporting

from pytest_mlebench.audit.audit_run import audit_run
from pytest_mlebench.audit.bundle import write_bundle
from pytest_mlebench.audit.claims import exit_status
from pytest_mlebench.grade import grade_submission
from pytest_mlebench.reports.report import Report
from pytest_mlebench.store.store import Store

TARGET_RATIO, TARGET_SECONDS = 1.2, 2.0
CODE = Path(__file__).parents[1] / "pytest_mlebench" / "agents" / "baseline"


def main() -> int:
    """Measure, print, and judge if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--attempts", type=int, default=24)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--check", action="store_true", help="fail beyond the targets")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        run = large_run(Path(name), arguments.attempts, arguments.rows)
        ratio = verify(run, Path(name) / "b.zip")
        seconds = audit(run)
    good = ratio <= TARGET_RATIO and seconds <= TARGET_SECONDS
    return int(arguments.check and not good)


def large_run(folder: Path, attempts: int, rows: int) -> bundles.GradedRun:
    """Return a run whose submissions have many rows and whose code is ordinary."""
    reporting.PREPARE = reporting.PREPARE.replace("range(100)", f"range({rows + 80})")

    def write(path: Path, error: float = 0) -> Path:
        lines = (f"{n},{n / 10 + error}\n" for n in range(80, rows + 80))
        path.write_text("id,y\n" + "".join(lines))
        return path

    bundles.write_submission = write
    run = bundles.graded_run(folder, tuple(0.5 + n / 100 for n in range(attempts)))
    for code in run.path.rglob("code"):
        for path in CODE.glob("*.py"):
            (code / path.name).write_text(path.read_text())
    return run


def verify(run: bundles.GradedRun, bundle: Path) -> float:
    """Return the time to verify as a multiple of the time to grade."""
    dataset = Store(run.store).ensure(run.registry.load("tiny"))
    submissions = sorted(run.path.rglob("submission.csv"))
    started = time.perf_counter()
    for path in submissions:
        grade_submission(dataset.competition, path, dataset.private)
    grading = time.perf_counter() - started
    write_bundle(run.path, bundle, run.registry)
    started = time.perf_counter()
    claims = run.verify(bundle)
    verifying = time.perf_counter() - started
    if exit_status(claims) != 0:
        raise SystemExit("the bundle does not hold")
    print(f"verify: {verifying:.2f} s for {len(submissions)}, grading alone {grading:.2f} s, "
          f"ratio {verifying / grading:.2f} (target {TARGET_RATIO})")  # fmt: skip
    return verifying / grading


def audit(run: bundles.GradedRun) -> float:
    """Return the median of the seconds per attempt."""
    moments = [time.perf_counter()]
    results = Report.from_run(run.path, run.registry).results
    audit_run(
        run.path,
        results,
        run.registry,
        run.store,
        progress=lambda done, of: moments.append(time.perf_counter()),
    )
    median = statistics.median(b - a for a, b in pairwise(moments))
    print(f"audit: {median:.2f} s per attempt at the median (target {TARGET_SECONDS:g})")
    return median


if __name__ == "__main__":
    sys.exit(main())
