"""What the plugin costs a session that does not use it, and what collecting everything costs.

    python benchmarks/unused_plugin.py [ROUNDS]

Sessions with and without the plugin alternate, so that both see the same machine; medians are
compared. A ratio near 1 is the aim for an unused plugin.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def main(rounds: int) -> int:
    """Print the ratios."""
    variants = {
        "without the plugin": ("-p", "no:mlebench", "test_trivial.py"),
        "plugin installed, unused": ("test_trivial.py",),
        "75 competitions x 3 seeds collected": (
            "--mle-agent=dummy",
            "--mle-split=all",
            "--mle-seeds=3",
            "--collect-only",
        ),
    }
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "test_trivial.py").write_text("def test_trivial(): pass\n")
        times: dict[str, list[float]] = {name: [] for name in variants}
        for _ in range(rounds):
            for name, arguments in variants.items():
                times[name].append(_seconds((*COMMAND, *arguments), scratch))
    base = statistics.median(times["without the plugin"])
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:38} {median:6.3f} s  x{median / base:.2f}  {median - base:+.3f} s")
    print(f"import of the plugin: {_import_milliseconds():.1f} ms")
    return 0


def _seconds(command: tuple[str, ...], folder: str) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def _import_milliseconds() -> float:
    """Return the best of several imports in fresh interpreters that have pytest already."""
    program = (
        "import pytest, time; t = time.perf_counter(); import pytest_mlebench.plugin.fixtures; "
        "import pytest_mlebench.plugin.hookspecs; print(time.perf_counter() - t)"
    )
    runs = [subprocess.check_output((sys.executable, "-c", program)) for _ in range(5)]
    return 1000 * min(map(float, runs))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 7))
