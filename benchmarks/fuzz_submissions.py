"""Every competition, many spoilt files: a score or one sentence, and check and score agree.

    python benchmarks/fuzz_submissions.py                  1000 files for each competition
    python benchmarks/fuzz_submissions.py --files 50       fewer
    python benchmarks/fuzz_submissions.py --short          a few files for some competitions
    python benchmarks/fuzz_submissions.py ID …             single competitions

Each file is an honest one after one to three changes: cells, tokens, columns, rows, bytes. Prints a
line for each competition and ends with 1 if a file broke a law, took too long or too much memory. A
file is named by its number, which makes it again.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from golden_pack import IDS
from submission_laws import Bench

FILES, SHORT_FILES = 1000, 20
SHORT_EVERY = 6  # of the competitions
MAX_SECONDS = 10.0  # of CPU for one file, checked and scored
MAX_BYTES = 500 * 10**6  # of memory more than before; the files are of a few kilobytes
AT_A_TIME = 2
SHOWN = 5


def main() -> int:
    """Fuzz, each competition in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--apart", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.apart:
        return fuzz(args.ids[0], args.files)
    ids = args.ids or (IDS[::SHORT_EVERY] if args.short else IDS)
    files = min(args.files, SHORT_FILES) if args.short else args.files
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        broken = sum(pool.map(lambda name: _apart(name, files), ids))
    print(f"{files * len(ids)} files for {len(ids)} competitions, {broken} with holes")
    return 1 if broken else 0


def fuzz(name: str, files: int) -> int:
    """Try many files of one competition, and print what came of them."""
    problems: dict[int, str] = {}
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench.of(name, Path(folder))
        bench.write(0)
        bench.problem()  # imports what the grader needs
        before = _peak_bytes()
        for number in range(files):
            bench.write(number)
            start = time.process_time()
            problem = bench.problem()
            seconds = time.process_time() - start
            slowest = max(slowest, seconds)
            if problem is None and seconds > MAX_SECONDS:
                problem = f"took {seconds:.1f} s"
            if problem is not None:
                problems[number] = problem
        memory = _peak_bytes() - before
    if memory > MAX_BYTES:
        problems[-1] = f"took {memory / 1e6:.0f} MB"
    counts = f"{bench.scored:5} scored, {files + 1 - bench.scored:5} refused"
    print(f"{name:58} {counts}, slowest {slowest:5.2f} s, +{memory / 1e6:4.0f} MB")
    for number, problem in list(problems.items())[:SHOWN]:
        print(f"    file {number}: {problem[:300]}")
    return 1 if problems else 0


def _apart(name: str, files: int) -> int:
    command = [sys.executable, __file__, "--apart", "--files", str(files), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr, end="", flush=True)
    return int(done.returncode != 0)


def _peak_bytes() -> int:
    unit = 1 if sys.platform == "darwin" else 1024  # man 2 getrusage
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    sys.exit(main())
