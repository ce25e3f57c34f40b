"""What the Docker sandbox costs beyond the container itself, measured side by side in one run.

    eval "$(scripts/engine start)"
    python benchmarks/docker_overhead.py [--rounds 15] [--check]

For every round the same container (same image, same limits, same mounts) is run twice: bare, by
create, start, wait and remove alone, and as an attempt of the sandbox with everything around it.
The difference of the medians is our overhead. Then eight of each run at once, and an agent talks
for ever longer while the controller's memory is measured. ``--check`` fails beyond the targets:
0.5 s at the median, 20 % more with eight at once, memory that does not grow with the log.
"""

from __future__ import annotations

import argparse
import gc
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from docker_images import ensure_images
from docker_jobs import JobMaker

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.sandbox import Job
from pytest_mlebench.sandbox.docker import DockerSandbox
from pytest_mlebench.sandbox.docker.home import Home
from pytest_mlebench.sandbox.docker.request import Wiring, container_request

AT_ONCE = 8
TARGET_SECONDS, TARGET_PARALLEL, TARGET_GROWTH = 0.5, 1.2, 20e6
SCRIPT = "cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv"


def main() -> int:
    """Measure, print, and judge if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--check", action="store_true", help="fail beyond the targets")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        try:
            bench = Bench(Path(name))
        except ConfigError as problem:
            print(f"not measured: {problem}")
            return int(arguments.check)
        verdicts = [
            bench.one_by_one(arguments.rounds),
            bench.at_once(arguments.rounds),
            bench.memory(),
        ]
    return int(arguments.check and not all(verdicts))


class Bench:
    """A sandbox with everything warm."""

    def __init__(self, folder: Path) -> None:
        data = folder / "store" / "demo" / "prepared" / "public"
        data.mkdir(parents=True)
        (data / "sample_submission.csv").write_text("id,target\n1,0\n")
        self.make_job = JobMaker(folder / "runs", data)
        self.sandbox = DockerSandbox(cache=folder / "cache")
        ensure_images(self.sandbox.engine.api)
        self.ours(self.job())

    def job(self, script: str = SCRIPT, **limits: Any) -> Job:
        """Return a job that is ready to run."""
        return self.make_job(script, cpus=0.5, **limits)

    def bare(self, job: Job) -> None:
        """Create, start, wait for and remove the container of a job, and nothing else."""
        sandbox, api = self.sandbox, self.sandbox.engine.api
        prepared = sandbox.prepare(job.agent)
        home = Home(job, prepared.account)
        request = container_request(sandbox.engine, job, prepared, Wiring(mounts=home.mounts()))
        self.started = time.perf_counter()
        container = api.create_container(**request)["Id"]
        api.start(container)
        api.wait(container)
        api.remove_container(container, v=True)

    def ours(self, job: Job) -> None:
        """Run a job as the sandbox does."""
        self.started = time.perf_counter()
        outcome = self.sandbox.run(job)
        if outcome.problem is not None:
            raise SystemExit(f"the benchmark's own agent failed: {outcome.problem}")

    def one_by_one(self, rounds: int) -> bool:
        """Compare single attempts, bare and ours in turn, so that a busy machine hits both."""
        times: dict[str, list[float]] = {"bare": [], "ours": []}
        for _ in range(rounds):
            for name, run in (("bare", self.bare), ("ours", self.ours)):
                job = self.job()
                run(job)
                times[name].append(time.perf_counter() - self.started)
        bare, ours = (statistics.median(times[name]) for name in ("bare", "ours"))
        self.overhead = ours - bare
        print(
            f"one by one   bare {bare:.3f} s   ours {ours:.3f} s   overhead {self.overhead:.3f} s"
        )
        return self.overhead <= TARGET_SECONDS

    def at_once(self, rounds: int) -> bool:
        """Compare eight attempts at once: the overhead per attempt, against the one before."""
        times: dict[str, list[float]] = {"bare": [], "ours": []}
        for _ in range(max(3, rounds // 3)):
            for name, run in (("bare", self.bare), ("ours", self.ours)):
                times[name].append(self._batch(run) / AT_ONCE)
        bare, ours = (statistics.median(times[name]) for name in ("bare", "ours"))
        overhead = ours - bare
        figures = f"bare {bare:.3f} s   ours {ours:.3f} s   overhead {overhead:.3f} s"
        print(f"{AT_ONCE} at once    {figures} (all together, divided by {AT_ONCE})")
        return overhead <= TARGET_PARALLEL * max(self.overhead, 0.05)  # below that it is noise

    def _batch(self, run: Callable[[Job], None]) -> float:
        jobs = [self.job() for _ in range(AT_ONCE)]
        started = time.perf_counter()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(run, jobs))
        return time.perf_counter() - started

    def memory(self) -> bool:
        """Let agents say more and more, and see what the controller's memory does."""
        peaks = []
        for megabytes in (10, 100, 400):
            gc.collect()
            self.sandbox.run(self.job(f"yes | head -c {megabytes}000000", time_seconds=300))
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
            print(
                f"log of {megabytes:3} MB   peak memory of the controller {peaks[-1] / 1e6:.0f} MB"
            )
        return peaks[-1] - peaks[0] <= TARGET_GROWTH


if __name__ == "__main__":
    sys.exit(main())
