"""Hosts that see the run's folder as we do: nothing is copied."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from host_machines import TWO, HostMachines, RunningSession


@pytest.fixture
def sharing(three_hosts: HostMachines) -> Iterator[HostMachines]:
    """Two hosts of their own; that the others could be made says that these can."""
    assert three_hosts.names
    hosts = HostMachines(2, shared=True)
    yield hosts
    hosts.down()


def test_in_a_shared_folder_nothing_is_copied(sharing: HostMachines) -> None:
    path = sharing.folder / "shared"
    agent, option = sharing.waiting_agent(path), sharing.write_toml(path / "hosts.toml")
    session = RunningSession(path, agent, option, *TWO)
    running = session.wait_for_running(2)
    name, machine = next(iter(running.items()))
    assert (session.run / name / ".keeper").is_file()
    sharing.end_connections(machine)
    session.wait_for_text(f"{machine} is lost")
    sharing.let_go()
    assert session.end() == 0, session.text
    assert {name: record["phase"] for name, record in session.records().items()} == dict.fromkeys(
        running, "graded"
    )
    for host in sharing.names:
        assert not (sharing.disk(host) / "root/.pytest-mlebench/runs").exists()
    assert [path for path in (session.run / name).iterdir() if path.name.startswith(".")] == []
