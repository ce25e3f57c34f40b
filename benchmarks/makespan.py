"""How long a run takes: the order in which we hand out items, hosts that fail, against the bounds.

    python benchmarks/makespan.py [--check] [--real]

No agent runs: time is simulated, and the scheduler is the one of a session (``OneByOne``), with
workers that only take the time an item takes. First 30 items of 0.2 to 8 s on 4 slots, in the order
of collection (nothing is known) and the longest first (durations are known), against the longest
processing time rule. Then 75 competitions with 3 seeds on 8, 32 and 128 GPUs, 8 to a host, with
hosts that fail every 7 or 30 days and are back after an hour: an attempt on such a host is lost.
Durations are those of agents that use up to a day on heavy tasks and stop early on light ones: a
median by complexity, a factor by competition, another by seed, cut at 24 h. ``--check`` fails where
a run with known durations takes more than 1.02 of the rule. ``--real`` runs two sessions of 30
items of 0.2 to 8 s on 4 slots, of which the second knows the durations of the first, and compares
how long each took with the simulation of the same items; ``--check`` fails beyond 10 %.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest_mlebench.machines.xdist_internals import OneByOne

TARGET = 1.02  # of the longest processing time rule
ROUNDS = 10
APART = 0.10  # by which a real session and its simulation may differ
DEMO = (
    "demo-bakery-orders",
    "demo-diabetes-progression",
    "demo-digits",
    "demo-support-desk",
    "demo-tumour-diagnosis",
    "demo-wine-cultivars",
)
AGENT = """
import os, shutil, time
time.sleep({seconds!r}[os.environ["COMPETITION_ID"] + " " + os.environ["MLE_SEED"]])
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""
GPUS_PER_HOST = 8
REPAIR_HOURS = 1.0
MEDIAN_HOURS = ((22, 4.0), (38, 14.0), (15, 22.0))  # competitions by complexity, and their median


@dataclass(eq=False)
class Worker:
    """A slot that takes items; what it is given is noted for the clock."""

    number: int
    gateway: Any = field(default_factory=lambda: SimpleNamespace(id="slot"))
    shutting_down: bool = False
    given: list[int] = field(default_factory=list)

    def send_runtest_some(self, indices: list[int]) -> None:
        """Take an item."""
        self.given += indices


@dataclass
class Known:
    """A policy that knows how long items take, as well as it is told."""

    predicted: Callable[[int], float]

    def predicted_seconds(self, nodeid: str) -> float:
        """Return what is known of an item's duration."""
        return self.predicted(int(nodeid))

    def rank(self, _nodeid: str, _worker: Any) -> int:
        """Let any slot take any item."""
        return 0

    def is_done(self, _nodeid: str) -> None:
        """Take no note of it."""


@dataclass(frozen=True)
class Outcome:
    """What a simulated run came to."""

    makespan: float
    lost: float  # of slots, in the unit of the durations: what failures took away


def simulate(
    durations: list[float],
    slots: int,
    predicted: Callable[[int], float],
    failures: Callable[[int], float] | None = None,  # by host: the time to its next failure
) -> Outcome:
    """Let the scheduler of a session hand out items in simulated time."""
    options = SimpleNamespace(getvalue=lambda _: ["popen"], getoption=lambda _: None)
    scheduler = OneByOne(options, None, Known(predicted))  # type: ignore[arg-type]  # all it needs
    items = [str(number) for number in range(len(durations))]
    events: list[tuple[float, int, str, int]] = []  # time, tie, kind, slot or host
    workers: dict[int, Worker] = {}
    began: dict[int, tuple[float, int]] = {}  # by slot: when its item began, and which
    now = lost = over = 0.0

    def push(time: float, kind: str, number: int) -> None:
        heapq.heappush(events, (time, len(events), kind, number))

    def start() -> None:
        for slot, worker in workers.items():
            if worker.given:
                began[slot] = (now, item := worker.given.pop())
                push(now + durations[item], f"over {id(worker)}", slot)

    def join(slot: int) -> None:
        workers[slot] = worker = Worker(slot)
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, items)
        scheduler.schedule()

    for slot in range(slots):
        join(slot)
    hosts = range(-(-slots // GPUS_PER_HOST)) if failures else range(0)
    for host in hosts:
        push(failures(host), "fail", host)  # type: ignore[misc]  # there are hosts only with it
    start()
    while not scheduler.tests_finished:
        now, _, kind, number = heapq.heappop(events)
        if kind.startswith("over"):
            worker = workers.get(number)
            if worker is None or kind != f"over {id(worker)}":
                continue  # its host had failed
            over = now
            scheduler.mark_test_complete(worker, began.pop(number)[1])
        elif kind == "fail":
            there = range(number * GPUS_PER_HOST, min(slots, (number + 1) * GPUS_PER_HOST))
            held = [scheduler.remove_node(workers.pop(slot)) for slot in there]
            lost += sum(now - began.pop(slot)[0] for slot in there if slot in began)
            for nodeid in filter(None, held):
                scheduler.give_back(nodeid)
            push(now + REPAIR_HOURS, "back", number)
        else:
            for slot in range(number * GPUS_PER_HOST, min(slots, (number + 1) * GPUS_PER_HOST)):
                join(slot)
            push(now + failures(number), "fail", number)  # type: ignore[misc]  # same
        start()
    return Outcome(over, lost)


def longest_processing_time(durations: list[float], slots: int) -> float:
    """Return the makespan of the rule, computed by itself."""
    free = [0.0] * slots
    for duration in sorted(durations, reverse=True):
        heapq.heappush(free, heapq.heappop(free) + duration)
    return max(free)


def bound(durations: list[float], slots: int) -> float:
    """Return what no order can be faster than."""
    return max(*durations, sum(durations) / slots)


def run_of_the_benchmark(rng: random.Random) -> tuple[list[float], list[float]]:
    """Return the hours of 75 competitions with 3 seeds, and what earlier runs would predict."""
    hours, predicted = [], []
    for count, median in MEDIAN_HOURS:
        for _ in range(count):
            usual = median * rng.lognormvariate(0, 0.5)
            hours += [min(24.0, usual * rng.lognormvariate(0, 0.6)) for _ in range(3)]
            predicted += [min(24.0, usual)] * 3
    return hours, predicted


def main() -> int:
    """Print the figures, and judge them if asked."""
    parser = argparse.ArgumentParser(description="Makespans of simulated runs.")
    parser.add_argument("--check", action="store_true", help="fail beyond the target")
    parser.add_argument("--real", action="store_true", help="compare with real sessions, too")
    options = parser.parse_args()
    if options.real and (apart := max(real_runs())) > APART and options.check:
        print(f"a real session and its simulation are apart by {apart:.3f}, more than {APART}")
        return 1
    worst = small_runs()
    large_runs()
    if options.check and worst > TARGET:
        print(f"known durations take up to {worst:.3f} of the rule, more than {TARGET}")
        return 1
    return 0


def real_runs() -> Iterator[float]:
    """Run two sessions and yield by how much each differs from its simulation."""
    rng = random.Random(1)
    seconds = {f"{name} {seed}": rng.uniform(0.2, 8.0) for name in DEMO for seed in range(5)}
    print("30 items on 4 slots, a real session (-n 4) against the simulation of the same items:")
    with tempfile.TemporaryDirectory(prefix="mle-makespan-") as folder:
        path = Path(folder)
        (path / "agent.py").write_text(AGENT.format(seconds=seconds))
        known: dict[str, list[float]] = {}
        for run in ("first", "second"):
            real, items = real_run(path, run)
            means = {name: statistics.median(each) for name, each in known.items()}
            simulated = simulate(
                [each for _, each in items],
                4,
                lambda index, means=means, items=items: means.get(items[index][0], 0.0),  # type: ignore[misc]  # bound now
            ).makespan
            print(f"  {run:7} real {real:6.1f} s, simulated {simulated:6.1f} s", flush=True)
            for name, each in items:
                known.setdefault(name, []).append(each)
            yield abs(real / simulated - 1)


def real_run(path: Path, run: str) -> tuple[float, list[tuple[str, float]]]:
    """Return how long a session took from its first item to its last, and the items' durations."""
    words = ["-p", "no:cacheprovider", "-n4", "--mle-agent=python agent.py", "--mle-seeds=5"]
    command = [sys.executable, "-m", "pytest", *words, f"--mle-run={run}"]
    subprocess.run(command, cwd=path, check=True, stdout=subprocess.DEVNULL)
    folder = path / "mle-runs" / run
    report = json.loads((folder / "report.json").read_text())
    items, begun, over = [], [], []
    for result in report["results"]:
        record = json.loads((Path(result["run"]) / "record.json").read_text())
        times = record["timings"]
        begun.append(times["created"])
        over.append(times["graded"])
        items.append((result["competition"], over[-1] - begun[-1]))
    return max(over) - min(begun), items


def small_runs() -> float:
    """Print 30 items on 4 slots; return the worst ratio with known durations."""
    known, unknown = [], []
    for seed in range(ROUNDS):
        rng = random.Random(seed)
        durations = [rng.uniform(0.2, 8.0) for _ in range(30)]
        rule = longest_processing_time(durations, 4)
        known.append(simulate(durations, 4, durations.__getitem__).makespan / rule)
        unknown.append(simulate(durations, 4, lambda _: 0.0).makespan / rule)
    print("30 items of 0.2 to 8 s on 4 slots, against the longest processing time rule:")
    print(f"  durations known    {statistics.mean(known):.3f} (worst {max(known):.3f})")
    print(f"  nothing known      {statistics.mean(unknown):.3f} (worst {max(unknown):.3f})")
    return max(known)


def large_runs() -> None:
    """Print 225 attempts on 8, 32 and 128 GPUs, with hosts that fail now and then."""
    print("75 competitions, 3 seeds; hours of makespan (times the bound), GPU-hours lost:")
    for gpus in (8, 32, 128):
        for days in (None, 30, 7):
            spans, ratios, lost = [], [], []
            for seed in range(ROUNDS):
                rng = random.Random(seed)
                hours, predicted = run_of_the_benchmark(rng)

                def next_failure(
                    _host: int, rng: random.Random = rng, days: int | None = days
                ) -> float:
                    return rng.expovariate(1 / (24.0 * (days or 1)))

                failures = None if days is None else next_failure
                outcome = simulate(hours, gpus, predicted.__getitem__, failures)
                spans.append(outcome.makespan)
                ratios.append(outcome.makespan / bound(hours, gpus))
                lost.append(outcome.lost)
            when = "no failures" if days is None else f"each host fails every {days} days"
            print(
                f"  {gpus:3} GPUs, {when:32} {statistics.mean(spans):7.1f} h "
                f"({statistics.mean(ratios):.3f}), {statistics.mean(lost):6.1f} lost"
            )


if __name__ == "__main__":
    sys.exit(main())
