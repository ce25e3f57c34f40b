"""Large files of attempts, which come by an ssh of their own; over a real one that is cut."""

from __future__ import annotations

import os
from pathlib import Path

from host_machines import HostMachines
from sandbox_job import wait_until

from pytest_mlebench.machines.hosts_file import read_hosts
from pytest_mlebench.machines.large_files import LargeFiles

BYTES = 4_000_000
KBIT = 16_000  # in a second: it takes two seconds


def test_a_copy_that_is_interrupted_goes_on_where_it_was(
    hosts: HostMachines, tmp_path: Path
) -> None:
    hosts.write_toml(tmp_path / "hosts.toml")
    machine = read_hosts(tmp_path / "hosts.toml").machines[0]
    data = os.urandom(BYTES)
    (hosts.disk("h1") / "tmp/model.bin").write_bytes(data)
    target, copies = tmp_path / "model.bin", LargeFiles(8.0)
    hosts.do("slow", "h1", str(KBIT))
    assert copies.begin(machine, "/tmp/model.bin", target) == "copying"
    assert wait_until(lambda: target.exists() and target.stat().st_size > 0, 60)
    hosts.end_connections("h1")
    come = target.stat().st_size
    assert come < BYTES
    assert copies.begin(machine, "/tmp/model.bin", target) == "copying"  # by the next worker
    hosts.do("mend", "h1")

    def is_shorter() -> bool:
        return target.stat().st_size < come

    assert wait_until(lambda: is_shorter() or copies.state(target) != "copying", 60)
    assert not is_shorter()
    assert copies.state(target) == "copied"
    assert target.read_bytes() == data


def test_a_file_that_cannot_be_copied_is_known_to_be_such(
    hosts: HostMachines, tmp_path: Path
) -> None:
    hosts.write_toml(tmp_path / "hosts.toml")
    machine = read_hosts(tmp_path / "hosts.toml").machines[0]
    copies = LargeFiles(8.0)
    copies.begin(machine, "/tmp/none", tmp_path / "none")
    assert wait_until(lambda: copies.state(tmp_path / "none") == "impossible", 120)
