"""What an item costs beside its agent: running it, and passing over it when a run is resumed.

    python benchmarks/per_item.py [ITEMS …]        50 200 800 3200 unless given

A session runs one demo competition with so many seeds by an agent that copies the sample; a second
one resumes it. What is counted is the time on processors, of supervisors and agents too; what an
item costs is the difference between two sizes, so that the start of a session does not count. No
other plugins take part: what they do for each item is theirs. The exit status is 1 if an item costs
more than 0.1 s, resuming more than 5 s, or if one of the two is not linear: both are to cost as
much per item in the largest run as in the smaller ones, about.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = (50, 200, 800, 3200)
FEW = 2  # items of the session that shows what starting one costs
ITEM_SECONDS = 0.1
RESUME_SECONDS = 5.0
LINEAR = 1.5  # the largest size may cost so many times per item what a smaller one does
SMALL_SECONDS = 0.5  # what resuming some items adds to a session: less of it is mostly noise

AGENT = 'cp "$DATA_DIR/sample_submission.csv" "$SUBMISSION_DIR/submission.csv"\n'


def main(sizes: list[int]) -> int:
    """Print a table and tell whether the bounds are kept."""
    print(f"{'items':>6}  {'run, CPU s':>10}  {'per item':>9}  {'resume, CPU s':>13}  per item")
    costs: list[float] = []
    resumes: list[tuple[float, float]] = []  # what it took beside the start, and that per item
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "agent.sh").write_text(AGENT)
        seconds(folder, 1)  # compiles what the others import
        run_start, resume_start = (seconds(folder, FEW) for _ in range(2))
        for size in sizes:
            run, resume = (seconds(folder, size) for _ in range(2))
            per_run, per_resume = (
                (spent - start) / (size - FEW)
                for spent, start in ((run, run_start), (resume, resume_start))
            )
            costs.append(per_run)
            resumes.append((resume - resume_start, per_resume))
            print(f"{size:>6}  {run:>10.2f}  {per_run:>9.4f}  {resume:>13.2f}  {per_resume:.4f}")
    missed = [
        *(["an item costs too much"] if costs[-1] > ITEM_SECONDS else []),
        *(["resuming takes too long"] if resume > RESUME_SECONDS else []),
        *(["cost is not linear"] if costs[-1] > LINEAR * costs[0] else []),
        *(["resuming is not linear"] if not _is_linear(resumes) else []),
    ]
    print("; ".join(missed) or "all bounds are kept")
    return int(bool(missed))


def _is_linear(resumes: list[tuple[float, float]]) -> bool:
    """Tell whether the largest run costs per item what the first one costs that can be measured."""
    measured = [per_item for spent, per_item in resumes if spent >= SMALL_SECONDS]
    return not measured or measured[-1] <= LINEAR * measured[0]


def seconds(folder: Path, items: int) -> float:
    """Return the time on processors that a session with so many items takes."""
    command = (
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        *("-p", "pytest_mlebench.plugin"),
        *("--mle-agent=sh agent.sh", "--mle-competition=demo-wine-cultivars"),
        *(f"--mle-seeds={items}", f"--mle-run=of-{items}"),
    )
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")  # by the first session
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"a session with {items} items ended with status {status}")
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main([int(word) for word in sys.argv[1:]] or [*SIZES]))
