"""Grading large files against merely reading the two of them with pandas, in every competition.

    python benchmarks/grading.py                 all competitions, 300 000 rows or more
    python benchmarks/grading.py --rows 20000    smaller files
    python benchmarks/grading.py --short         some competitions, small files
    python benchmarks/grading.py ID …            single competitions

The files are those of the golden packs, repeated under new ids, the submission in another order.
Reading and grading alternate in one process, and the best CPU times of three are compared, which
hold on a busy machine, too; the memory is that of a process which grades once, less what its
imports take. Some competitions, whose metrics are by row, are also graded in the way in which one
writes it down first (support/graded_by_hand.py), which gives the same score. The aims: 1.5 times
the reading at the median of all competitions, 6 times at worst; no grader slower than the one
written by hand; 4 times the files in memory. Ends with 1 if one of them is missed, but for the
short form, whose files are too small to tell.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from support.graded_by_hand import BY_HAND
from support.large_files import make

from pytest_mlebench import load_competition
from pytest_mlebench.registry import Registry

ROWS, SHORT_ROWS = 300_000, 5_000
SHORT_EVERY = 9  # of the competitions
TIMES = 3
MEDIAN_RATIO, WORST_RATIO, MEMORY_RATIO = 1.5, 6.0, 4.0
SMALL_BYTES = 10**7  # of memory: what a process takes for any file


def main() -> int:
    """Measure each competition in processes of its own, and compare with the aims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--apart", choices=["time", "memory"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.apart:
        {"time": _print_times, "memory": _print_memory}[args.apart](*args.ids)
        return 0
    graded = [name for name in Registry().ids() if not name.startswith("demo-")]
    ids = args.ids or (graded[::SHORT_EVERY] if args.short else graded)
    rows = min(args.rows, SHORT_ROWS) if args.short else args.rows
    print(
        f"{'competition':58} {'rows':>8} {'reading':>9} {'grading':>9} {'ratio':>6} {'memory':>6} "
        f"{'by hand':>9} {'ratio':>6}"
    )
    results = [_measure(name, rows) for name in ids]
    ratios, memories, speeds = zip(*results, strict=True)
    median = statistics.median(ratios)
    print(f"median x{median:.2f}, worst x{max(ratios):.1f}, most memory x{max(memories):.1f}")
    if min(speeds) < math.inf:
        print(f"least x{min(speeds):.1f} as fast as by hand")
    is_met = median <= MEDIAN_RATIO and max(ratios) <= WORST_RATIO and max(memories) <= MEMORY_RATIO
    return 0 if (is_met and min(speeds) >= 1) or args.short else 1


def _measure(name: str, rows: int) -> tuple[float, float, float]:
    """Return the time relative to reading, the memory to the files, and the speed to by hand."""
    with tempfile.TemporaryDirectory() as scratch:
        files = make(load_competition(name), Path(scratch), rows, shuffle=True)
        reading, grading, by_hand = _apart("time", name, scratch)
        (memory,) = _apart("memory", name, scratch)
        share = max(0.0, memory - SMALL_BYTES) / files.size
    print(
        f"{name:58} {files.rows:8} {reading:8.3f}s {grading:8.3f}s {grading / reading:6.2f} "
        f"{share:6.1f}" + (f" {by_hand:8.3f}s {by_hand / grading:6.1f}" if by_hand else ""),
        flush=True,
    )
    return grading / reading, share, by_hand / grading if by_hand else math.inf


def _apart(what: str, name: str, folder: str) -> list[float]:
    command = [sys.executable, __file__, "--apart", what, name, folder]
    found: list[float] = json.loads(subprocess.check_output(command))
    return found


def _print_times(name: str, folder: str) -> None:
    competition, private = load_competition(name), Path(folder, "private")
    submission, answers = Path(folder, "submission.csv"), private / competition.answers
    score = competition.score(submission, private)  # imports what it needs
    read = pd.read_csv if answers.suffix == ".csv" else _read_lines
    reading, grading = [], []
    for _ in range(TIMES):
        reading.append(_seconds(lambda: (read(answers), pd.read_csv(submission))))
        grading.append(_seconds(lambda: competition.score(submission, private)))
    print(json.dumps([min(reading), min(grading), _by_hand(name, submission, answers, score)]))


def _by_hand(name: str, submission: Path, answers: Path, score: float) -> float:
    """Return the time of the straightforward grader, zero if there is none."""
    if name not in BY_HAND:
        return 0.0
    scores: list[float] = []
    seconds = _seconds(lambda: scores.append(BY_HAND[name](submission, answers)))
    if not math.isclose(scores[0], score, rel_tol=1e-9):
        raise SystemExit(f"{name}: {score}, but {scores[0]} by hand")
    return seconds


def _read_lines(path: Path) -> pd.DataFrame:
    return pd.read_json(path, lines=True)


def _print_memory(name: str, folder: str) -> None:
    competition, private = load_competition(name), Path(folder, "private")
    with tempfile.TemporaryDirectory() as scratch:
        few = make(competition, Path(scratch), 1, shuffle=False)
        competition.score(few.submission, few.private)  # imports what it needs
    Path("/proc/self/clear_refs").write_text("5")  # man 5 proc: resets the peak
    before = _memory("VmRSS")
    competition.score(Path(folder, "submission.csv"), private)
    print(json.dumps([_memory("VmHWM") - before]))


def _memory(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def _seconds(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
