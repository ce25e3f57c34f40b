"""What the plugin costs a session that does not use it, and what collecting everything costs.

    python benchmarks/unused_plugin.py [ROUNDS]

Sessions with and without the plugin alternate, so that both see the same machine. What is counted
is the time on a processor, which other people's processes change little; the least of the rounds is
compared. The exit status is 1 if a bound is missed: x1.02 for a session that does not use the
plugin, 2 ms for its import, 0.1 s for collecting 75 competitions with 3 seeds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

COMMAND = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
WITHOUT, UNUSED, COLLECTED, IMPORTED = (
    "without the plugin",
    "plugin installed, unused",
    "75 competitions x 3 seeds collected",
    "import of the plugin",
)
VARIANTS = {
    WITHOUT: ("-p", "no:mlebench", "test_trivial.py"),
    UNUSED: ("test_trivial.py",),
    COLLECTED: ("--mle-agent=dummy", "--mle-split=all", "--mle-seeds=3", "--collect-only"),
}
PROGRAM = (
    "import pytest, time; t = time.process_time(); import pytest_mlebench.plugin.fixtures; "
    "import pytest_mlebench.plugin.hookspecs; print(time.process_time() - t)"
)


def main(rounds: int) -> int:
    """Print the figures, and tell whether they keep their bounds."""
    times: dict[str, list[float]] = {name: [] for name in (*VARIANTS, IMPORTED)}
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "test_trivial.py").write_text("def test_trivial(): pass\n")
        for _ in range(rounds):
            for name, arguments in VARIANTS.items():
                times[name].append(_cpu_seconds((*COMMAND, *arguments), scratch))
            imported = subprocess.check_output((sys.executable, "-c", PROGRAM))
            times[IMPORTED].append(float(imported))
    least = {name: min(values) for name, values in times.items()}
    base = least[WITHOUT]
    for name in VARIANTS:
        more = least[name] - base
        print(f"{name:38} {least[name]:6.3f} s  x{least[name] / base:.3f}  {more:+.3f} s")
    print(f"{IMPORTED}: {1000 * least[IMPORTED]:.1f} ms")
    kept = least[UNUSED] <= 1.02 * base and least[IMPORTED] <= 0.002
    return 0 if kept and least[COLLECTED] <= base + 0.1 else 1


def _cpu_seconds(command: tuple[str, ...], folder: str) -> float:
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 7))
