"""Kill sessions, workers, zygotes and graders at random moments, resume, and compare the reports.

    python benchmarks/kills.py [KILLS [SEED]]      24 kills unless given; the full form has 1000
    python benchmarks/kills.py --docker …          with containers, on an engine of its own (root)

Every kill is a SIGKILL at a moment within the time that an undisturbed session takes, of the next
target in turn. With --docker a container may be removed, and the engine restarted or killed and
started again. The run is then resumed by its name until nothing is missing; its results must be
those of the undisturbed one, each item must have been graded once, and nothing may be left running.
The exit status is 1 if a kill lost or changed anything. Keepers of attempts, which only other hosts
have, are killed by fault_campaign.py.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from docker_engines import OwnEngine
from docker_images import BUSYBOX, ensure_busybox

from pytest_mlebench.sandbox.docker import Engine
from pytest_mlebench.sandbox.docker.labels import OWNED

KILLS = 24
MAX_SESSIONS = 4  # until a run must be complete
LOG_LINES = 25  # shown of a session that went wrong
SECONDS = 300.0  # for a session, on a busy host

AGENT = 'sleep 0.3\ncp "$DATA_DIR/sample_submission.csv" "$SUBMISSION_DIR/submission.csv"\n'
SELECTION = (
    *("--mle-seeds=2", "--mle-competition=demo-wine-cultivars", "--mle-competition=demo-digits"),
)
AS_PROCESS = "--mle-agent=sh agent.sh"
IN_CONTAINER = ("--mle-agent=agents/copier/agent.toml", "--mle-cpus=0.5", "--mle-memory=500MB")
MODES: dict[str, tuple[str, ...]] = {
    "plain": (AS_PROCESS,),
    "workers": (AS_PROCESS, "-n2"),
    "docker": IN_CONTAINER,
    "docker workers": (*IN_CONTAINER, "-n2"),
}
Target = tuple[str, str]  # who is killed, and in which mode
DOCKER_TARGETS: tuple[Target, ...] = (
    ("session", "docker"),
    ("container", "docker"),
    ("engine restart", "docker"),
    ("session", "docker workers"),
    ("worker", "docker workers"),
    ("container", "docker workers"),
    ("engine kill", "docker workers"),
)
TARGETS: tuple[Target, ...] = (
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


class DisturbedEngine:
    """An engine of the campaign's own, which may be restarted, killed, and robbed."""

    def __init__(self) -> None:
        self._script = OwnEngine("kills")
        self.address = self._script("start")
        self._engine = Engine(self.address)
        ensure_busybox(self._engine.api)

    def restart(self) -> None:
        """Stop it, with what runs in it, and start it."""
        self._script("restart")

    def kill(self) -> None:
        """Kill it, and start it again."""
        self._script.kill()
        self._script("start")

    def containers(self) -> list[str]:
        """Return the containers of attempts."""
        found = self._engine.api.containers(all=True, filters={"label": OWNED})
        return [each["Id"] for each in found]

    def remove(self, container: str) -> None:
        """Remove a container under the hands of the session."""
        with contextlib.suppress(self._engine.sdk.errors.APIError):  # it is just being removed
            self._engine.api.remove_container(container, force=True)

    def close(self) -> None:
        """Stop it and remove its folder."""
        self._engine.close()
        self._script("wipe")


class Campaign:
    """Kills in one folder, against what undisturbed sessions of each mode do."""

    def __init__(self, folder: Path, seed: int, engine: DisturbedEngine | None = None) -> None:
        self._folder = folder
        self._random = random.Random(seed)
        self._engine = engine
        self._targets = TARGETS if engine is None else DOCKER_TARGETS
        (folder / "agent.sh").write_text(AGENT)
        described = folder / "agents" / "copier" / "agent.toml"  # nothing else is the agent's
        described.parent.mkdir(parents=True)
        described.write_text(
            f'image = "{BUSYBOX}"\ncommand = ["sh", "-c", {json.dumps(AGENT)}]\nnetwork = "none"\n'
        )
        self._duration: dict[str, float] = {}
        expected = []
        for mode in dict.fromkeys(mode for _, mode in self._targets):
            began = time.monotonic()
            self._start(mode, f"undisturbed-{mode}").wait(SECONDS)
            self._duration[mode] = time.monotonic() - began
            expected.append(self._results(f"undisturbed-{mode}"))
        self._expected: Any = expected[0]
        if any(results != self._expected for results in expected):
            raise SystemExit(f"undisturbed sessions differ: {expected}")

    def kill(self, number: int) -> str | None:
        """Kill the next target once; return what was lost or changed, if anything."""
        target, mode = self._targets[number % len(self._targets)]
        run = f"kill-{number}"
        session = self._start(mode, run)
        time.sleep(self._random.uniform(0, self._duration[mode]))
        self._strike(session.pid, target)
        session.wait(SECONDS)
        for _ in range(MAX_SESSIONS):
            if self._start(mode, run).wait(SECONDS) == 0:
                break
        complaint = self._complaint(run)
        if complaint is None:
            return None
        log = (self._folder / f"{run}.log").read_text(errors="replace").splitlines()
        return "\n    ".join([complaint, *log[-LOG_LINES:]])

    def describe(self, number: int) -> str:
        """Return which kill it is."""
        return "{} ({})".format(*self._targets[number % len(self._targets)])

    def _start(self, mode: str, run: str) -> subprocess.Popen[bytes]:
        command = (
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-p", "pytest_mlebench.plugin", "-p", "xdist.plugin"),  # no others: they take time
            *(*SELECTION, *MODES[mode], f"--mle-run={run}"),
        )
        variables = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        if self._engine is not None:
            variables["DOCKER_HOST"] = self._engine.address
        with (self._folder / f"{run}.log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=self._folder, stdout=log, stderr=log, env=variables
            )

    def _strike(self, session: int, target: str) -> None:
        """Do to the target what is to be survived; to the session if there is none yet."""
        if self._engine is not None:
            deeds: dict[str, Callable[[], None]] = {
                "engine restart": self._engine.restart,
                "engine kill": self._engine.kill,
            }
            if target == "container" and (containers := self._engine.containers()):
                chosen, engine = self._random.choice(containers), self._engine
                deeds["container"] = lambda: engine.remove(chosen)
            if target in deeds:
                deeds[target]()
                return
        for pid in self._victims(session, target):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _victims(self, session: int, target: str) -> list[int]:
        if target not in MARKS:
            return [session]
        found = [pid for pid in _descendants(session) if MARKS[target] in _command(pid)]
        if target == "zygote":  # not its forks: an agent whose supervisor is lost has failed
            forks = {each for pid in found for each in _descendants(pid)}
            found = [pid for pid in found if pid not in forks]
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
        while (running := [*self._running()]) and time.monotonic() < deadline:
            time.sleep(0.1)
        return f"still there: {running}" if running else None

    def _running(self) -> Iterator[str]:
        yield from _running_in(self._folder)
        if self._engine is not None:
            yield from (f"container {each}" for each in self._engine.containers())

    def _results(self, run: str) -> Any:
        report = json.loads((self._folder / "mle-runs" / run / "report.json").read_text())
        return sorted(
            (each["competition"], each["seed"], each["outcome"], each["grade"]["score"])
            for each in report["results"]
        )


def main() -> int:
    """Kill, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kills", nargs="?", type=int, default=KILLS)
    parser.add_argument("seed", nargs="?", type=int, default=0)
    parser.add_argument("--docker", action="store_true", help="containers, and their engine")
    args = parser.parse_args()
    failed, kills = 0, args.kills
    print(f"{kills} kills, seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        engine = DisturbedEngine() if args.docker else None
        if engine is not None:
            stack.callback(engine.close)
        campaign = Campaign(Path(scratch), args.seed, engine)
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
    sys.exit(main())
