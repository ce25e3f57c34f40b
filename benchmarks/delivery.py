"""How fast files of attempts come from a host: in pieces through the channel, and as a whole.

    sudo python benchmarks/delivery.py --megabytes 400

A host of scripts/hosts is on the same machine: both ends share its cores, and the network is none.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import execnet

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from host_machines import HostMachines

from pytest_mlebench.layout import RunFolder
from pytest_mlebench.machines.delivery import Incoming
from pytest_mlebench.machines.hosts_file import Machine
from pytest_mlebench.machines.large_files import LargeFiles
from pytest_mlebench.machines.link import answer_questions
from pytest_mlebench.machines.ssh import execnet_spec

NAME = "demo/seed0/attempt1"

# on the host: make an attempt with one file, and deliver it
THERE = """
import os, pathlib, sys, tempfile, time
from pytest_mlebench.machines import delivery
from pytest_mlebench.machines.link import Link
inner, size, copy_bytes, window = channel.receive()
delivery.COPY_BYTES, delivery.WINDOW = copy_bytes, window
with tempfile.TemporaryDirectory() as folder:
    piece = os.urandom(1 << 20)
    with open(f"{folder}/model.bin", "wb") as file:
        for _ in range(size):
            file.write(piece)
    link = delivery.LeasedLink(Link(inner), "demo/seed0/attempt1", None)
    began = time.monotonic()
    delivery.send_attempt(link, pathlib.Path(folder), b"{}")
    channel.send(time.monotonic() - began)
"""


def main() -> None:
    """Print megabytes per second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=400)
    size = parser.parse_args().megabytes
    hosts = HostMachines(1)
    try:
        machine = Machine("h1", ("-F", f"{hosts.folder}/ssh_config", "h1"), sys.executable)
        ways = {"one piece at a time": (10**18, 1), "pieces in a window": (10**18, 8)}
        ways["ssh of its own"] = (0, 8)
        for words, (copy_bytes, window) in ways.items():
            seconds = deliver(machine, size, copy_bytes, window)
            print(f"{words}: {size} MiB in {seconds:.1f} s, {size / seconds:.0f} MiB/s", flush=True)
    finally:
        hosts.down()


def deliver(machine: Machine, size: int, copy_bytes: int, window: int) -> float:
    """Return the seconds that the delivery of a file took."""
    group = execnet.Group()
    gateway = group.makegateway(execnet_spec(machine, 60, "h1.0"))
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder(Path(folder))
        (run.path / NAME).mkdir(parents=True)
        inner = gateway.newchannel()
        answer_questions(inner, answers(run, machine))
        channel = gateway.remote_exec(THERE)
        channel.send((inner, size, copy_bytes, window))
        seconds = float(channel.receive())
        arrived = (run.path / NAME / "model.bin").stat().st_size
        if arrived != size << 20:
            raise SystemExit(f"{arrived} bytes arrived instead of {size << 20}")
    group.terminate(5)
    return seconds


def answers(run: RunFolder, machine: Machine) -> dict[str, Callable[..., Any]]:
    """Return what the host may ask for, as the controller's desk answers it."""
    incoming, large = Incoming(run), LargeFiles(60)

    def about(act: Callable[..., Any], name: str, lease: str | None, **data: Any) -> Any:
        return act(name, **data)

    def copy(name: str, file: str, path: str) -> str:
        return large.begin(machine, path, incoming.part(name, file))

    def copied(name: str, file: str) -> str:
        return large.state(incoming.part(name, file))

    desk = SimpleNamespace(piece=incoming.piece, place=incoming.place, copy=copy, copied=copied)
    return {name: partial(about, act) for name, act in vars(desk).items()}


if __name__ == "__main__":
    main()
