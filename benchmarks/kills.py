"""Kill sessions, workers, zygotes and graders at random moments, resume, and compare the reports.

    python benchmarks/kills.py [KILLS [SEED]]      24 kills unless given; the full form has 1000

Every kill is a SIGKILL at a moment within the time that an undisturbed session takes, of the next
target in turn. The run is then resumed by its name until nothing is missing; its results must be
those of the undisturbed one, each item must have been graded once, and nothing may be left running.
The exit status is 1 if a kill lost or changed anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

KILLS = 24
MAX_SESSIONS = 4  # until a run must be complete
SECONDS = 300.0  # for a session, on a busy host

AGENT = 'sleep 0.3\ncp "$DATA_DIR/sample_submission.csv" "$SUBMISSION_DIR/submission.csv"\n'
SELECTION = (
    *("--mle-agent=sh agent.sh", "--mle-seeds=2"),
    *("--mle-competition=demo-wine-cultivars", "--mle-competition=demo-digits"),
)
MODES: dict[str, tuple[str, ...]] = {"plain": (), "workers": ("-n2",)}
TARGETS = (  # who is killed, and in which mode
    ("session", "plain"),
    ("zygote", "plain"),
    ("grader", "plain"),
    ("session", "workers"),
    ("worker", "workers"),
    ("zygote", "workers"),
    ("grader", "workers"),
)
MARKS = {  # in the command lines of those that can be killed
    "worker": "exec(eval(sys.stdin.readline()))",
    "zygote": "zygote.main()",
    "grader": "grading_server",
}
END_SECONDS = 30.0  # for what belonged to a dead session to end, on a busy host


class Campaign:
    """Kills in one folder, against what undisturbed sessions of each mode do."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._random = random.Random(seed)
        (folder / "agent.sh").write_text(AGENT)
        self._duration: dict[str, float] = {}
        expected = []
        for mode in MODES:
            began = time.monotonic()
            self._start(mode, f"undisturbed-{mode}").wait(SECONDS)
            self._duration[mode] = time.monotonic() - began
            expected.append(self._results(f"undisturbed-{mode}"))
        self._expected: Any = expected[0]
        if any(results != self._expected for results in expected):
            raise SystemExit(f"undisturbed sessions differ: {expected}")

    def kill(self, number: int) -> str | None:
        """Kill the next target once; return what was lost or changed, if anything."""
        target, mode = TARGETS[number % len(TARGETS)]
        run = f"kill-{number}"
        session = self._start(mode, run)
        time.sleep(self._random.uniform(0, self._duration[mode]))
        for pid in self._victims(session.pid, target):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        session.wait(SECONDS)
        for _ in range(MAX_SESSIONS):
            if self._start(mode, run).wait(SECONDS) == 0:
                break
        return self._complaint(run)

    def describe(self, number: int) -> str:
        """Return which kill it is."""
        return "{} ({})".format(*TARGETS[number % len(TARGETS)])

    def _start(self, mode: str, run: str) -> subprocess.Popen[bytes]:
        command = (
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *(*SELECTION, *MODES[mode], f"--mle-run={run}"),
        )
        with (self._folder / f"{run}.log").open("ab") as log:
            return subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log)

    def _victims(self, session: int, target: str) -> list[int]:
        if target == "session":
            return [session]
        found = [pid for pid in _descendants(session) if MARKS[target] in _command(pid)]
        return self._random.sample(found, 1) if found else [session]

    def _complaint(self, run: str) -> str | None:
        try:
            results = self._results(run)
        except (OSError, ValueError) as problem:
            return f"there is no report: {problem}"
        if results != self._expected:
            return f"the results differ: {results} instead of {self._expected}"
        graded = [
            path for path in self._folder.glob(f"mle-runs/{run}/*/seed*") if _graded(path) != 1
        ]
        if graded:
            return f"graded more than once: {graded}"
        left = sorted(self._folder.glob(f"mle-runs/{run}/*/seed*/attempt*/home"))
        if left:
            return f"workspaces are left: {left}"
        deadline = time.monotonic() + END_SECONDS
        while (running := _running_in(self._folder)) and time.monotonic() < deadline:
            time.sleep(0.1)
        return f"still running: {running}" if running else None

    def _results(self, run: str) -> Any:
        report = json.loads((self._folder / "mle-runs" / run / "report.json").read_text())
        return sorted(
            (each["competition"], each["seed"], each["outcome"], each["grade"]["score"])
            for each in report["results"]
        )


def main(kills: int, seed: int) -> int:
    """Kill, and print what came of it."""
    failed = 0
    print(f"{kills} kills, seed {seed}")
    with tempfile.TemporaryDirectory() as scratch:
        campaign = Campaign(Path(scratch), seed)
        for number in range(kills):
            complaint = campaign.kill(number)
            failed += complaint is not None
            print(
                f"{number}: {campaign.describe(number)}: {complaint or 'nothing lost'}", flush=True
            )
    print(f"{kills - failed} of {kills} resumed to the same report")
    return int(failed > 0)


def _graded(seed: Path) -> int:
    records = [json.loads(path.read_text()) for path in seed.glob("attempt*/record.json")]
    return sum(record["phase"] == "graded" for record in records)


def _descendants(pid: int) -> list[int]:
    children: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    return [each for child in children for each in (child, *_descendants(child))]


def _running_in(folder: Path) -> list[str]:
    """Return the commands of processes that are at work in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            place = (process / "cwd").readlink()
            command = _command(int(process.name))
            if place.is_relative_to(folder) or str(folder) in command:
                found.append(command.replace("\0", " "))
    return found


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    sys.exit(main(words[0] if words else KILLS, words[1] if len(words) > 1 else 0))
