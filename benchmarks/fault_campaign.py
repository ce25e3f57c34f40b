"""Random faults over a session on three hosts; in the end every item is graded exactly once.

    python benchmarks/fault_campaign.py --faults 100 --seed 1 [--slurm | --engines]

Hosts are namespaces of this machine with an sshd each (scripts/hosts; needs root). Faults: a
worker, a keeper, a connection or the session itself is killed, a host is switched off and on, its
cable is cut and mended. With --slurm attempts run in allocations of a Slurm of this machine
(scripts/slurm): a worker, a keeper, a connection, the holder of an allocation or the session is
killed, an allocation is cancelled or preempted; an attempt that loses its allocation is repeated.

With --engines each host has a container engine, agents run in containers, engines are restarted,
and no container may be left; it needs one here, too (scripts/engine): the image is sent from there.

A session that ends or is killed is resumed until all is done. Meanwhile all processes of all hosts
are looked at for an item that runs twice at the same time. The exit status is 0 only if nothing was
lost, repeated, doubled or left behind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from host_engines import DockedMachines
from host_machines import HostMachines, RunningSession
from sandbox_job import wait_until
from slurm_nodes import SlurmNodes

GRACE = "20s"
ROUNDS = 60  # sessions, at most
TELL_TRIES = 5
WARN = "--mle-hosts-missing=warn"
EXPECTED = (0, 1, 4, -9)  # statuses: all is well, items are left, no host at all, killed
WEIGHTS = {"session": 1, "power": 2, "cable": 2}  # others 4: what ends a session ends many chances
AGENT = """
import os, shutil, sys, time
time.sleep(float(sys.argv[1]))
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""
CONTAINED = "sleep {pause}; cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv"


class Campaign:
    """A run, the hosts it is on, and what happens to them."""

    def __init__(self, options: argparse.Namespace, path: Path) -> None:
        self.options = options
        self.random = random.Random(options.seed)
        self.hosts = self._make_hosts(path)
        self.path = path
        self.session: RunningSession | None = None
        self.doubled: set[str] = set()
        self.surprises: list[str] = []
        self.happened: Counter[str] = Counter()
        self._over = threading.Event()
        self.arguments = [
            self._write_agent(),
            f"--mle-split={options.split}",
            f"--mle-seeds={options.seeds}",
            f"--mle-grace={GRACE}",
            WARN,
            self.hosts.write_toml(path / "hosts.toml", **self._slots()),
        ]

    def _make_hosts(self, path: Path) -> HostMachines | SlurmNodes:
        if self.options.slurm:
            return SlurmNodes(self.random, path)
        return (DockedMachines if self.options.engines else HostMachines)(self.options.hosts)

    def _write_agent(self) -> str:
        """Write an agent that takes its time, and return the option that names it."""
        if not self.options.engines:
            (self.path / "agent.py").write_text(AGENT)
            return f"--mle-agent=python agent.py {self.options.pause}"
        from docker_images import BUSYBOX, ensure_busybox

        from pytest_mlebench.sandbox.docker import Engine

        engine = Engine()
        ensure_busybox(engine.api)
        engine.close()
        command = CONTAINED.format(pause=self.options.pause)
        (self.path / "boxed").mkdir()
        (self.path / "boxed/agent.toml").write_text(
            f'image = "{BUSYBOX}"\ncommand = ["sh", "-c", "{command}"]\n'
        )
        return "--mle-agent=boxed"

    def run(self) -> list[str]:
        """Do it all, and return what went wrong."""
        watch = threading.Thread(target=self._watch, daemon=True)
        watch.start()
        left = self.options.faults
        for number in range(ROUNDS):
            self.session = RunningSession(self.path, *self.arguments, log=f"output{number}")
            while self.session.process.poll() is None and left:
                self._pause(self.random.uniform(0.5, 2.5) * self.options.pace)
                left -= self._fault()
            self._heal()
            status = self.session.end()
            print(f"session {number}: status {status}, {left} faults left", flush=True)
            if status not in EXPECTED:
                self.surprises.append(f"session {number} ended with status {status}")
            if status == 0 and not left:
                break
            if status == 0:  # all is done before the faults are: begin another run
                self._set_aside()
        self._tell_all()
        self._over.set()
        watch.join()
        return self._verdict()

    def end(self) -> None:
        """End what is left."""
        if self.session is not None and self.session.process.poll() is None:
            self.session.process.kill()
        self.hosts.down()

    def _fault(self) -> int:
        """Let one thing happen; return how many have."""
        name = self.random.choice(self.hosts.names)
        faults = self._faults()
        kind = self.random.choices(list(faults), [WEIGHTS.get(each, 4) for each in faults])[0]
        if not faults[kind](name):
            return 0
        self.happened[kind] += 1
        return 1

    def _slots(self) -> dict[str, dict[str, int]]:
        return {name: {"slots": self.options.slots} for name in self.hosts.names}

    def _faults(self) -> dict[str, Callable[[str], bool]]:
        """Return what may happen, by name."""
        if isinstance(self.hosts, SlurmNodes):
            return {**self.hosts.faults(), "session": self._kill_session}
        engines = isinstance(self.hosts, DockedMachines)
        more = {"engine": self.hosts.restart_engine} if engines else {}
        return {
            **more,
            "worker": lambda name: self._kill(name, b"sys.stdin.readline", keeper=False),
            "keeper": lambda name: self._kill(name, b"sys.stdin.readline", keeper=True),
            "session": self._kill_session,
            "connection": self._end_connection,
            "power": self._switch_off,
            "cable": self._cut,
        }

    def _kill(self, name: str, word: bytes, *, keeper: bool) -> bool:
        """Kill a process of ours on a host; a keeper is one that writes to its own log."""
        found = [pid for pid in self.hosts.pids(name) if _is_ours(pid, word, keeper=keeper)]
        if not found:
            return False
        os.kill(self.random.choice(found), signal.SIGKILL)
        return True

    def _kill_session(self, _name: str) -> bool:
        if self.session is not None:
            self.session.process.kill()
        return True

    def _end_connection(self, name: str) -> bool:
        self.hosts.end_connections(name)
        return True

    def _switch_off(self, name: str) -> bool:
        if self.hosts.pids(name):
            self.hosts.do("kill", name)
            self._pause(self.random.uniform(0, 4))
        self.hosts.do("back", name)
        return True

    def _cut(self, name: str) -> bool:
        self.hosts.do("cut", name)
        self._pause(self.random.choice([1.0, 5.0, 12.0, 30.0]))
        self.hosts.do("mend", name)
        return True

    def _heal(self) -> None:
        if isinstance(self.hosts, SlurmNodes):
            return
        for name in self.hosts.names:
            self.hosts.do("mend", name)
            if not self.hosts.pids(name):
                self.hosts.do("back", name)

    def _pause(self, seconds: float) -> None:
        self._over.wait(seconds)

    def _tell_all(self) -> None:
        """Let a host that was away to the end of a run learn that it has nothing to do."""
        everybody = [each for each in self.arguments if each != WARN]
        for _ in range(TELL_TRIES):  # until all hosts have been there
            self._heal()
            self.session = RunningSession(self.path, *everybody, log="last")
            status = self.session.end()
            print(f"last session: status {status}", flush=True)
            if status == 0:
                return
        self.surprises.append(f"{TELL_TRIES} sessions did not reach all hosts, the last one:")
        self.surprises.append(self.session.text[-2000:])

    def _set_aside(self) -> None:
        self._tell_all()
        for problem in self._wrong_with_run():
            raise SystemExit(problem)
        run = self.path / "mle-runs" / "r"
        run.rename(run.with_name(f"done-{time.time_ns()}"))

    def _watch(self) -> None:
        """Look for an item that runs on two hosts, or twice on one."""
        while not self._over.wait(0.2):
            seen = Counter(self._running_items())
            self.doubled.update(item for item, count in seen.items() if count > 1)

    def _running_items(self) -> list[str]:
        """Return the items that agents are at work on, each as often as there are agents."""
        if isinstance(self.hosts, DockedMachines):
            return [item for engine in self.hosts.engines.values() for item in engine.items()]
        items = (_item_of(pid) for pid in self._pids_of_agents())
        return [item for item in items if item is not None]

    def _pids_of_agents(self) -> list[int]:
        """Return processes, the agents' among them."""
        if isinstance(self.hosts, SlurmNodes):
            return self.hosts.agents()
        return [pid for name in self.hosts.names for pid in self.hosts.pids(name)]

    def _verdict(self) -> list[str]:
        wrong = [*self.surprises]
        wrong += [f"ran twice at the same time: {item}" for item in sorted(self.doubled)]
        wrong += self._wrong_with_run()
        wait_until(lambda: not self._leftovers(), 60)
        return wrong + [f"left behind: {each}" for each in self._leftovers()]

    def _leftovers(self) -> list[str]:
        """Return what is left; whoever is killed may leave the one folder that it had in /tmp."""
        found = self.hosts.leftovers()
        scratch = [each for each in found if "/tmp/tmp" in each]
        killed = sum(self.happened.values())
        return [each for each in found if each not in scratch or len(scratch) > killed]

    def _wrong_with_run(self) -> list[str]:
        if self.session is None:
            return ["no session"]
        graded = Counter(
            (record["competition"], record["seed"])
            for record in self.session.records().values()
            if record["phase"] == "graded"
        )
        results = self.session.report()["results"]
        wrong = [f"graded {count} times: {item}" for item, count in graded.items() if count > 1]
        wrong += [
            f"{each['outcome']}: {each['competition']} seed {each['seed']}"
            for each in results
            if each["outcome"] != "graded"
        ]
        if len(graded) != len(results):
            wrong.append(f"{len(graded)} items are graded on disk, {len(results)} in the report")
        return wrong


def _is_ours(pid: int, word: bytes, *, keeper: bool) -> bool:
    try:
        if word not in Path(f"/proc/{pid}/cmdline").read_bytes():
            return False
        return (Path(f"/proc/{pid}/fd/1").readlink().name == ".keeper.log") is keeper
    except OSError:
        return False


def _item_of(pid: int) -> str | None:
    """Return the item that a process is the agent of, if it is one."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if len(words) < 2 or not words[1].endswith(b"agent.py"):
            return None
        pairs = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    values = dict(pair.split(b"=", 1) for pair in pairs if b"=" in pair)
    names = (b"COMPETITION_ID", b"MLE_SEED")
    return " ".join(values.get(name, b"?").decode() for name in names)


def main() -> int:
    """Run the campaign and print what became of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--slots", type=int, default=1, help="attempts at a time on each host")
    parser.add_argument("--slurm", action="store_true", help="in allocations of a Slurm")
    parser.add_argument("--engines", action="store_true", help="in containers, on engines")
    parser.add_argument("--split", default="demo", help="six competitions")
    parser.add_argument("--seeds", type=int, default=4, help="with the demo split: 24 items")
    parser.add_argument("--pause", type=float, default=3.0, help="seconds that an agent takes")
    parser.add_argument("--pace", type=float, default=1.0, help="times the pauses between faults")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mle-campaign-") as folder:
        campaign = Campaign(options, Path(folder))
        began = time.monotonic()
        try:
            wrong = campaign.run()
        finally:
            campaign.end()
            if campaign.session is not None:
                subprocess.run(["tail", "-n", "30", str(campaign.session.output)], check=False)
    figures = {"seconds": round(time.monotonic() - began), "faults": dict(campaign.happened)}
    print(json.dumps(figures))
    for line in wrong:
        print(line)
    print("every item was graded exactly once" if not wrong else f"{len(wrong)} things are wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
