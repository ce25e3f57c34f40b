"""Reaching a machine by ssh or srun: the words for the command, and a first look at it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pytest_mlebench._units import show_size
from pytest_mlebench.machines.hosts_file import Machine
from pytest_mlebench.sandbox.disk import RESERVE

CONNECT_SECONDS = 10
LOOK_SECONDS = 60
NODE_SECONDS = 30  # for Slurm to give a node that is only looked at
KEEPALIVES = 3  # unanswered ones, after which ssh ends the connection (man ssh_config)
CLOCK_SECONDS = 30.0  # by which two hosts may differ without making durations look wrong
PACKAGES = ("pytest-mlebench", "pytest-xdist", "execnet", "pytest")

# What is run on the other side: the standard library only, for ours may not be there.
_LOOK = """
import importlib.metadata, json, os, platform, shutil, sys, time
folder = os.path.join(os.path.expanduser("~"), sys.argv[1])
os.makedirs(folder, mode=0o700, exist_ok=True)
versions = {}
for name in sys.argv[2:]:
    try:
        versions[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        versions[name] = None
print(json.dumps({
    "python": platform.python_version(), "versions": versions, "time": time.time(),
    "host": platform.node(), "free": shutil.disk_usage(folder).free, "folder": folder,
}))
"""

T = TypeVar("T")


@dataclass(frozen=True)
class HostLook:
    """What a first look at a machine has found."""

    machine: Machine
    problems: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)


def ssh_words(machine: Machine, keepalive: float) -> list[str]:
    """Return what ssh is given before the command: options, and the host."""
    interval = max(1, int(keepalive / (KEEPALIVES + 1)))
    options = {
        "BatchMode": "yes",  # a question nobody can answer would wait for ever
        "ConnectTimeout": CONNECT_SECONDS,
        "ServerAliveInterval": interval,
        "ServerAliveCountMax": KEEPALIVES,
    }
    words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    return [*words, *machine.ssh]


def srun_words(machine: Machine, job: str) -> list[str]:
    """Return the command that starts Python in an allocation of its own, by a name to cancel it."""
    # without --unbuffered srun keeps what a worker says until it has a whole line (man srun)
    options = ["--unbuffered", "--quiet", f"--job-name={job}", "--kill-on-bad-exit=1"]
    return [*outside_of_job(), "srun", *options, *(machine.srun or ()), machine.python]


def step_words(machine: Machine, job: str, node: str) -> list[str]:
    """Return the command that starts Python in an allocation, beside what runs there already."""
    # the step needs nothing of what the job has: it only gives its streams to the holder
    options = ["--unbuffered", "--quiet", f"--jobid={job}", "--overlap", f"--nodelist={node}"]
    options += ["--nodes=1", "--ntasks=1", "--cpus-per-task=1", "--mem=0", "--gres=none"]
    entry = [machine.python, "-m", "pytest_mlebench.machines.allocation_entry"]
    return [*outside_of_job(), "srun", *options, *entry]


def outside_of_job() -> list[str]:
    """Return what lets srun and sbatch ask for another job although we are in one ourselves.

    With the variables of a job srun would start a step of that job (man srun, INPUT ENVIRONMENT).
    """
    if "SLURM_JOB_ID" not in os.environ:
        return []
    names = [name for name in os.environ if name.startswith("SLURM_") and name != "SLURM_CONF"]
    return ["env", *(f"--unset={name}" for name in sorted(names))]


def execnet_spec(
    machine: Machine, keepalive: float, name: str, step: Sequence[str] | None = None
) -> str:
    """Return the words with which execnet starts a worker: by a step of Slurm, or by ssh."""
    if step is not None:
        start = ("popen", f"python={shlex.join(step)}")
    else:
        start = (f"ssh={' '.join(ssh_words(machine, keepalive))}", f"python={machine.python}")
    parts = (
        *start,
        f"chdir={machine.folder}",
        f"id={name}",
        "execmodel=main_thread_only",
    )
    return "//".join(parts)


def run_there(
    machine: Machine,
    keepalive: float,
    *words: str,
    data: bytes = b"",
    seconds: float | None = None,
    on_node: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command on a machine; of Slurm's, on a node only if asked: that may mean to wait."""
    if machine.srun is None:
        command = ["ssh", *ssh_words(machine, keepalive), shlex.join(words)]
    elif on_node:
        command = [*srun_words(machine, "mlebench-check")[:-1], f"--immediate={NODE_SECONDS}"]
        command += words
    else:
        command = list(words)  # the nodes see what we see
    return subprocess.run(command, input=data, capture_output=True, timeout=seconds, check=False)


def look_at(
    machine: Machine, keepalive: float, expected: dict[str, str], *, on_node: bool = False
) -> HostLook:
    """Look whether a machine can be reached and has what a session needs, in these versions."""
    if machine.srun is not None and shutil.which("srun") is None:
        return HostLook(machine, ("needs srun, which is not here: run pytest where Slurm is",))
    words = (machine.python, "-c", _LOOK, machine.folder, *PACKAGES)
    seconds = LOOK_SECONDS + (NODE_SECONDS if on_node else 0)
    began = time.time()
    try:
        done = run_there(machine, keepalive, *words, seconds=seconds, on_node=on_node)
    except subprocess.TimeoutExpired:
        return HostLook(machine, (f"does not answer within {seconds} s",))
    except OSError as problem:
        return HostLook(machine, (f"cannot run {machine.python}: {problem.strerror}",))
    if done.returncode != 0:
        return HostLook(machine, (_why(machine, done),))
    try:
        facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return HostLook(
            machine, ("answers with something else than asked for: is its shell silent?",)
        )
    return HostLook(machine, tuple(_problems(facts, expected, began, time.time())), facts)


def at_once(machines: Iterable[Machine], look: Callable[[Machine], T]) -> list[T]:
    """Look at all machines at the same time."""
    wanted = list(machines)
    with ThreadPoolExecutor(max_workers=max(1, len(wanted))) as pool:
        return list(pool.map(look, wanted))


def _why(machine: Machine, done: subprocess.CompletedProcess[bytes]) -> str:
    lines = [line.strip() for line in done.stderr.decode(errors="replace").splitlines()]
    said = next((line for line in reversed(lines) if line), f"exit status {done.returncode}")
    if said.startswith("srun: ") and "task" not in said:  # there was none to ask
        return f"was not looked at, for Slurm gave no node within {NODE_SECONDS} s: {said[6:]}"
    if done.returncode == 255 or done.returncode < 0:  # of ssh itself (man ssh), or it was killed
        return f"cannot be reached: {said}"
    if done.returncode == 127:  # of a shell that knows no such command
        return f"has no {machine.python}: run pytest-mlebench hosts setup"
    return f"cannot run {machine.python}: {said}"


def _problems(
    facts: dict[str, Any], expected: dict[str, str], began: float, ended: float
) -> list[str]:
    """Return what is not as it has to be."""
    found = []
    ours = ".".join(expected["python"].split(".")[:2])
    if ".".join(facts["python"].split(".")[:2]) != ours:
        found.append(f"has Python {facts['python']}, and we {expected['python']}: use {ours} there")
    for name in PACKAGES[:3]:
        there = facts["versions"].get(name)
        if there is None:
            found.append(f"has no {name}: run pytest-mlebench hosts setup")
        elif there != expected[name]:
            found.append(
                f"has {name} {there}, and we {expected[name]}: run pytest-mlebench hosts setup"
            )
    apart = max(began - facts["time"], facts["time"] - ended)
    if apart > CLOCK_SECONDS:
        found.append(f"has a clock that is {apart:.0f} s apart from ours: set it right (NTP)")
    return found


def disk_problems(look: HostLook) -> list[str]:
    """Return why no attempt could begin on a machine's disk, if that is so."""
    free = look.facts.get("free")
    if free is None or free >= RESERVE.bytes:
        return []
    left, needed = show_size(free), show_size(RESERVE.bytes)
    where = look.facts["folder"]
    return [f"has {left} left on the disk of {where}, and {needed} must stay free: make room there"]


def disk_note(look: HostLook, wanted: int) -> str | None:
    """Return a line on a disk that has less left than an attempt may write."""
    free = look.facts.get("free")
    if look.problems or free is None or free >= wanted:
        return None
    left = f"{show_size(free)} left on the disk of {look.facts['folder']}"
    return f"host {look.machine}: {left}, less than the limit of {show_size(wanted)}"


def own_versions() -> dict[str, str]:
    """Return the versions here of what has to be the same everywhere."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found
