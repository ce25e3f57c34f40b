"""What several machines cost: per attempt, on the wire, to connect, to adopt, for the controller.

    python benchmarks/machines.py [--short] [--check]

Hosts are namespaces of this machine with an sshd each (scripts/hosts; needs root), so that all of
them share its CPUs: figures come with the load under which they were taken. Per attempt: sessions
on a host and here (-n 1) are compared by the median time from one attempt to the next; bytes are
those that many attempts send through the host's cable beyond few, without the attempts' files.
Hosts to connect take 5 s to start Python, as over a network file system: what is measured is
whether they are waited for at the same time. ``--short`` does less of everything; ``--check`` exits
with 1 where a bound is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from host_machines import HostMachines, RunningSession
from sandbox_job import wait_until

SLOW_START = 5.0  # seconds that a host takes to start Python
DIGITS = "--mle-competition=demo-digits"
ATTEMPTS = ("--mle-agent=dummy", DIGITS)
PAUSING = """
import os, shutil, sys, time
time.sleep(float(sys.argv[1]))
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""


@dataclass(frozen=True)
class Figure:
    """Something measured, and what it may be at most."""

    name: str
    value: float
    bound: float
    unit: str

    def __str__(self) -> str:
        verdict = "" if self.value <= self.bound else "  MISSED"
        return f"{self.name:58} {self.value:8.2f} {self.unit:8} (at most {self.bound:g}){verdict}"


def run(path: Path, *arguments: str, name: str) -> RunningSession:
    """Run a session to its end."""
    session = RunningSession(path, *arguments, run=name, log=f"{name}.log")
    if (status := session.end()) != 0:
        raise SystemExit(f"a session ended with status {status}:\n{session.text[-3000:]}")
    return session


def per_attempt(hosts: HostMachines, path: Path, few: int, many: int) -> Iterator[Figure]:
    """Yield what an attempt on a host costs beyond one that is here."""
    option = one_host(hosts, path)
    wire, files = {}, {}
    for number in (few, many):
        before = cable_bytes(hosts, "h1")
        there = run(path, *ATTEMPTS, f"--mle-seeds={number}", option, name=f"there{number}")
        wire[number] = cable_bytes(hosts, "h1") - before
        files[number] = size_of_attempts(there)
    run(path, *ATTEMPTS, "-n1", name="warm-here")
    here = run(path, *ATTEMPTS, f"--mle-seeds={many}", "-n1", name="here")
    beyond, more = pace(there) - pace(here), many - few
    yield Figure("an attempt on a host, beyond one that is here", beyond, 1.0, "s")
    sent, kept = (wire[many] - wire[few]) / more / 1e3, (files[many] - files[few]) / more / 1e3
    print(
        f"an attempt here takes {pace(here):.2f} s; one on a host sends {sent:.1f} kB (compressed)"
    )
    print(f"  and its files are {kept:.1f} kB", flush=True)
    yield Figure("on the wire for an attempt, beside its files", sent - kept, 64, "kB")


def one_host(hosts: HostMachines, path: Path) -> str:
    """Write a hosts.toml of the first host only, and return the option that names it."""
    hosts.write_toml(path / "one.toml")
    (path / "one.toml").write_text((path / "one.toml").read_text().split("[hosts.h2]")[0])
    return f"--mle-hosts={path}/one.toml"


def pace(session: RunningSession) -> float:
    """Return the median time from the end of an attempt to the end of the next."""
    ends = sorted(record["timings"]["graded"] for record in session.records().values())
    return median(after - before for before, after in pairwise(ends))


def cable_bytes(hosts: HostMachines, name: str) -> int:
    """Return what has gone through the cable of a host so far, both ways."""
    folder = Path(f"/sys/class/net/mle{hosts.network}x{name[1:]}/statistics")
    return sum(int((folder / f"{way}_bytes").read_text()) for way in ("rx", "tx"))


def size_of_attempts(session: RunningSession) -> int:
    """Return the bytes of all files of a run's attempts."""
    files = session.run.glob("*/seed*/attempt*/**/*")
    return sum(path.stat().st_size for path in files if path.is_file())


def connecting(path: Path, number: int) -> Figure:
    """Return how much longer it takes to connect to many hosts than to one."""
    hosts = HostMachines(number)
    try:
        slow = {name: slow_python(hosts, name) for name in hosts.names}
        option = hosts.write_toml(path / "many.toml", **slow)
        first = (path / "many.toml").read_text().split("[hosts.h2]")[0]
        (path / "single.toml").write_text(first)
        one = until_here(path, f"--mle-hosts={path}/single.toml", 1, "single")
        many = until_here(path, option, number, "many")
    finally:
        hosts.down()
    print(f"connected to 1 host in {one:.1f} s, to {number} in {many:.1f} s", flush=True)
    return Figure(f"{number} hosts connected, in times of one", many / one, 2.0, "times")


def slow_python(hosts: HostMachines, name: str) -> dict[str, object]:
    """Let a host have a Python that is slow to start, and return its table in hosts.toml."""
    script = hosts.disk(name) / "root" / "slow-python"
    script.write_text(f'#!/bin/sh\nsleep {SLOW_START}\nexec {sys.executable} "$@"\n')
    script.chmod(0o755)
    return {"python": "/root/slow-python"}


def until_here(path: Path, option: str, number: int, name: str) -> float:
    """Return the seconds from the start of a session until all its hosts are there."""
    began = time.monotonic()
    session = RunningSession(path, "--mle-agent=dummy", DIGITS, option, run=name, log=name)
    if not wait_until(lambda: session.text.count(" is here: ") >= number, 300):
        raise SystemExit(session.text[-3000:])
    passed = time.monotonic() - began
    session.end()
    return passed


def adopting(hosts: HostMachines, path: Path) -> Iterator[Figure]:
    """Yield how long it takes until an attempt is adopted when the way to its host is back."""
    agent = hosts.waiting_agent(path)
    option = hosts.write_toml(path / "hosts.toml")
    session = RunningSession(path, agent, DIGITS, option, run="adopt", log="adopt.log")
    ((_, machine),) = session.wait_for_running(1).items()
    here = f"{machine} is here: "

    def again(count: int) -> float:
        began = time.monotonic()
        if not wait_until(lambda: session.text.count(here) >= count, 240):
            raise SystemExit(session.text[-3000:])
        return time.monotonic() - began

    hosts.end_connections(machine)
    yield Figure("adopted after a connection was lost", again(2), 5.0, "s")
    hosts.do("cut", machine)
    session.wait_for_text(f"{machine} cannot be reached")
    hosts.do("mend", machine)
    yield Figure("adopted after a cut cable was mended", again(3), 5.0, "s")
    hosts.let_go()
    session.end()
    if len(session.records()) != 1:
        raise SystemExit("the attempt was repeated, not adopted")


@contextmanager
def watched(pid: int) -> Iterator[dict[str, float]]:
    """Yield what a process uses, known at the end of the block: MB at most, seconds of CPU."""
    used = {"megabytes": 0.0, "cpu": 0.0}
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.2):
            try:
                status = Path(f"/proc/{pid}/status").read_text()
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            except OSError:
                return
            peak = next((line for line in status.splitlines() if line.startswith("VmHWM")), "")
            used["megabytes"] = float(peak.split()[1]) / 1e3 if peak else used["megabytes"]
            ticks = int(fields[11]) + int(fields[12])  # utime and stime (man 5 proc)
            used["cpu"] = ticks / os.sysconf("SC_CLK_TCK")

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    yield used
    over.set()
    thread.join()


def controlling(
    hosts: HostMachines, path: Path, slots: int, seeds: int, pause: float
) -> Iterator[Figure]:
    """Yield what the controller of many workers uses."""
    (path / "pausing.py").write_text(PAUSING)
    option = hosts.write_toml(
        path / "wide.toml", **{name: {"slots": slots} for name in hosts.names}
    )
    began = time.monotonic()
    words = (f"--mle-agent=python pausing.py {pause}", f"--mle-seeds={seeds}", option)
    session = RunningSession(path, *words, run="wide", log="wide.log")
    with watched(session.process.pid) as used:
        status = session.process.wait(1500)
    passed = time.monotonic() - began
    if status != 0:
        raise SystemExit(session.text[-3000:])
    number = f"{6 * seeds} items on {slots * len(hosts.names)} workers"
    print(f"{number}: {passed:.0f} s, the controller used {used['cpu']:.1f} s of CPU", flush=True)
    yield Figure(f"controller of {number}: memory", used["megabytes"], 250, "MB")
    yield Figure(f"controller of {number}: CPU", 100 * used["cpu"] / passed, 5, "% of one")


def main() -> int:
    """Measure, print, and judge if asked."""
    parser = argparse.ArgumentParser(description="What several machines cost.")
    parser.add_argument("--short", action="store_true", help="fewer attempts, hosts and workers")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bound is missed")
    options = parser.parse_args()
    few, many, number, slots, seeds, pause = (
        (1, 4, 4, 2, 2, 1.0) if options.short else (2, 22, 16, 8, 38, 20.0)
    )
    found: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="mle-machines-") as folder:
        path = Path(folder)
        hosts = HostMachines(4)
        try:
            run(path, "--mle-agent=dummy", hosts.write_toml(path / "warm.toml"), name="warm")
            for figures in (
                per_attempt(hosts, path, few, many),
                adopting(hosts, path),
                controlling(hosts, path, slots, seeds, pause),
            ):
                for figure in figures:
                    print(figure, flush=True)
                    found.append(figure)
        finally:
            hosts.down()
        found.append(connecting(path, number))
        print(found[-1])
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs, which all hosts share")
    return int(options.check and any(figure.value > figure.bound for figure in found))


if __name__ == "__main__":
    sys.exit(main())
