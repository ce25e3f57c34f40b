"""How fast ``write_csv`` writes tables, against ``DataFrame.to_csv``, by the kind of their cells.

    python benchmarks/write_csv.py [--rows 4000000] [--rounds 1] [KIND …]
    python benchmarks/write_csv.py --short       small tables
    python benchmarks/write_csv.py --check       ends with 1 if a kind misses its aim

The kinds are those that the preparations of our competitions write. Both write the same table, one
after the other, and the files are compared byte for byte. Shown are seconds, and CPU seconds with
those of the processes that helped, which tell what is to be had where other work keeps the cores
busy. The aims hold for large tables, and where orjson is installed.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from pytest_mlebench.preparing import write_csv

ROWS, SHORT_ROWS = 4_000_000, 20_000
AIM = 6.0  # times as fast
# Their bytes are gone through several times here: 5.1 to 7.6 were measured, by load and caches.
AIMS = {"quoted texts": 5.0}
WORDS = 5_000

Kind = Callable[[np.random.Generator, int], dict[str, object]]
Cost = tuple[float, float]  # seconds, CPU seconds


def sentences(draw: np.random.Generator, rows: int, end: str = "") -> np.ndarray:
    """Return texts of eight words, of which some are equal."""
    words = np.array([f"w{number}" for number in range(WORDS)], dtype=object)
    some = [" ".join(words[draw.integers(0, WORDS, 8)]) + end for _ in range(min(rows, 20_000))]
    return np.array(some, dtype=object)[draw.integers(0, len(some), rows)]


def missing(draw: np.random.Generator, values: np.ndarray) -> np.ndarray:
    """Return values of which a fifth is missing."""
    return np.where(draw.random(len(values)) < 0.2, np.nan, values)


KINDS: dict[str, Kind] = {
    "whole numbers": lambda draw, rows: {
        f"x{n}": draw.integers(-(10**6), 10**6, rows) for n in range(5)
    },
    "decimals": lambda draw, rows: {f"x{n}": draw.normal(size=rows) for n in range(5)},
    "small decimals": lambda draw, rows: {
        f"x{n}": 10.0 ** draw.uniform(-7, -3, rows) for n in range(5)
    },
    "decimals, some missing": lambda draw, rows: {
        f"x{n}": missing(draw, draw.normal(size=rows)) for n in range(5)
    },
    "both in turn": lambda draw, rows: {
        f"x{n}": draw.integers(0, 99, rows) if n % 2 else draw.normal(size=rows) for n in range(4)
    },
    "booleans": lambda draw, rows: {f"x{n}": draw.random(rows) < 0.5 for n in range(5)},
    "text and a number": lambda draw, rows: {
        "id": sentences(draw, rows),
        "y": draw.integers(0, 9, rows),
    },
    "texts": lambda draw, rows: {"a": sentences(draw, rows), "b": sentences(draw, rows)},
    "texts, some missing": lambda draw, rows: {
        "a": sentences(draw, rows),
        "b": missing(draw, sentences(draw, rows)),
    },
    "quoted texts": lambda draw, rows: {
        "n": np.arange(rows),
        "a": sentences(draw, rows, ', "so"'),
    },
}


def main() -> int:
    """Compare the kinds asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"some of: {', '.join(KINDS)}")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=1, help="the best of so many counts")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    rows = SHORT_ROWS if options.short else options.rows
    print(f"{rows} rows, load {os.getloadavg()[0]:.1f}")
    missed = []
    for name in options.kinds or KINDS:
        table = pd.DataFrame(KINDS[name](np.random.default_rng(0), rows))
        ratio = compare(name, table, options.rounds)
        if ratio < AIMS.get(name, AIM):
            missed.append(f"{name}: {ratio:.1f} times as fast, {AIMS.get(name, AIM)} wanted")
    if options.check and missed:
        print("\n".join(missed))
    return int(options.check and bool(missed))


def compare(name: str, table: pd.DataFrame, rounds: int) -> float:
    """Write a table both ways; print what it took, and return how many times as fast ours was."""
    with tempfile.TemporaryDirectory() as scratch:
        theirs, ours = Path(scratch, "theirs.csv"), Path(scratch, "ours.csv")
        slow = min(cost(lambda: to_csv(table, theirs)) for _ in range(rounds))
        fast = min(cost(lambda: write_csv(table, ours)) for _ in range(rounds))
        if not filecmp.cmp(theirs, ours, shallow=False):
            raise SystemExit(f"{name}: the files differ")
    ratio = slow[0] / fast[0]
    print(
        f"{name:24} {slow[0]:6.2f} s / {fast[0]:5.2f} s = {ratio:4.1f}, "
        f"CPU {slow[1]:6.2f} s / {fast[1]:5.2f} s = {slow[1] / fast[1]:4.1f}",
        flush=True,
    )
    return ratio


def to_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table as one does without a toolbox."""
    table.to_csv(path, index=False, lineterminator="\n")


def cost(action: Callable[[], object]) -> Cost:
    """Return the seconds and the CPU seconds that something takes."""
    start, before = time.perf_counter(), cpu_seconds()
    action()
    return time.perf_counter() - start, cpu_seconds() - before


def cpu_seconds() -> float:
    """Return the CPU seconds of this process, and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in usages)


if __name__ == "__main__":
    sys.exit(main())
