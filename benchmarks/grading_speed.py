"""Grading a million rows against merely reading the two csv files with pandas.

    python benchmarks/grading_speed.py [ROWS]

Reading and grading alternate, and medians are compared. The aim: at most 3 times the reading for a
single column of numbers, and at most 4 times the files in memory.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from pytest_mlebench import load_competition

COMPETITIONS = {  # id: columns of a random submission and of the answers
    "ventilator-pressure-prediction": lambda r, n: {
        "id": np.arange(n),
        "pressure": r.normal(20, 5, n),
    },
    "tabular-playground-series-may-2022": lambda r, n: {
        "id": np.arange(n),
        "target": r.uniform(size=n),
    },
    "tabular-playground-series-dec-2021": lambda r, n: {
        "Id": np.arange(n),
        "Cover_Type": r.randint(1, 8, n),
    },
}


def main(rows: int) -> int:
    """Print the ratios."""
    for name, columns in COMPETITIONS.items():
        with tempfile.TemporaryDirectory() as scratch:
            ratio, size = _measure(name, columns, rows, Path(scratch))
            memory = _memory(name, Path(scratch))
        print(f"{name:40} x{ratio:.2f} of reading, memory x{memory / size:.1f} of the files")
    return 0


def _measure(
    name: str, columns: Callable[..., dict[str, object]], rows: int, folder: Path
) -> tuple[float, int]:
    competition = load_competition(name)
    random = np.random.RandomState(0)
    answers = pd.DataFrame(columns(random, rows))
    if name.startswith("ventilator"):
        answers["u_out"] = random.randint(0, 2, rows)
    if "may-2022" in name:
        answers["target"] = random.randint(0, 2, rows)
    private = folder / competition.answers
    answers.to_csv(private, index=False)
    submission = folder / "submission.csv"
    pd.DataFrame(columns(random, rows)).sample(frac=1, random_state=0).to_csv(
        submission, index=False
    )
    reading, grading = [], []
    for _ in range(3):
        reading.append(_seconds(lambda: (pd.read_csv(private), pd.read_csv(submission))))
        grading.append(_seconds(lambda: competition.score(submission, folder)))
    ratio = statistics.median(grading) / statistics.median(reading)
    return ratio, private.stat().st_size + submission.stat().st_size


def _memory(name: str, folder: Path) -> int:
    """Return the peak memory of grading in a process of its own, less what the imports take."""
    program = (
        "import sys; from pathlib import Path; import pandas, sklearn.metrics;"
        "from pytest_mlebench import load_competition; folder = Path(sys.argv[2]);"
        "memory = lambda key: next(int(line.split()[1]) for line in open('/proc/self/status')"
        " if line.startswith(key));"
        "open('/proc/self/clear_refs', 'w').write('5'); before = memory('VmRSS');"
        "load_competition(sys.argv[1]).score(folder / 'submission.csv', folder);"
        "print((memory('VmHWM') - before) * 1024)"
    )
    return int(subprocess.check_output((sys.executable, "-c", program, name, str(folder))))


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
