"""Hosts, connections and sessions that are lost: attempts go on, items are not lost or doubled."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from host_machines import TWO, HostMachines, RunningSession
from sandbox_job import wait_until

Start = Callable[..., RunningSession]


def phases(session: RunningSession) -> dict[str, str]:
    return {name: record["phase"] for name, record in session.records().items()}


def following(name: str) -> str:
    """Return the next attempt of the same item."""
    item, _, number = name.rpartition("attempt")
    return f"{item}attempt{int(number) + 1}"


def test_an_attempt_outlives_its_connection_and_is_adopted(
    hosts: HostMachines, agent: str, start: Start, tmp_path: Path
) -> None:
    # a connection that is closed is noticed by its end, not by a silence of ten minutes
    session = start(agent, hosts.write_toml(tmp_path / "hosts.toml", keepalive="10m"), *TWO)
    running = session.wait_for_running(2)
    machine = next(iter(running.values()))
    hosts.end_connections(machine)
    session.wait_for_text(f"{machine} is lost")
    assert wait_until(lambda: session.text.count(f"{machine} is here") == 2, 120), session.text
    hosts.let_go()
    assert session.end() == 0, session.text
    assert phases(session) == dict.fromkeys(running, "graded")  # the same attempts, no other
    assert hosts.leftovers() == []


def test_a_host_that_is_switched_off_gives_its_item_back_and_joins_again(
    hosts: HostMachines, agent: str, start: Start, tmp_path: Path
) -> None:
    session = start(agent, hosts.write_toml(tmp_path / "hosts.toml"), *TWO)
    running = session.wait_for_running(2)
    name, machine = next(iter(running.items()))
    hosts.do("kill", machine)
    session.wait_for_text(f"{machine} is lost")
    hosts.do("back", machine)
    again = following(name)
    assert wait_until(lambda: again in session.running(), 240), session.text
    hosts.let_go()
    assert session.end() == 0, session.text
    expected = {name: "error", again: "graded"} | {
        each: "graded" for each in running if each != name
    }
    found = phases(session)
    assert found.items() >= expected.items()
    # a worker that is lost after its attempt was numbered and before its keeper holds it takes the
    # attempt along: under load that may happen before the test begins to disturb them
    assert {phase for each, phase in found.items() if each not in expected} <= {"error"}
    assert f"{machine} was lost" in session.records()[name]["error"]
    assert {r["outcome"] for r in session.report()["results"]} == {"graded"}
    assert hosts.leftovers() == []


def test_another_host_gets_the_item_only_when_the_grace_is_over(
    hosts: HostMachines, agent: str, start: Start, tmp_path: Path
) -> None:
    option = hosts.write_toml(tmp_path / "hosts.toml")
    session = start(agent, option, TWO[0], "--mle-grace=6s")
    ((name, machine),) = session.wait_for_running(1).items()
    hosts.do("cut", machine)  # the host goes on, and knows nothing of us
    session.wait_for_text(f"{machine} is lost")
    again = name.replace("attempt1", "attempt2")
    assert wait_until(lambda: again in session.running(), 240), session.text
    assert session.running()[again] != machine
    assert not [each for each in hosts.workload(machine) if "waiting.py" in each]
    hosts.do("mend", machine)  # it comes back, and is told to forget what it has
    assert wait_until(lambda: session.text.count(f"{machine} is here") == 2, 240), session.text
    hosts.let_go()
    assert session.end() == 0, session.text
    assert phases(session) == {name: "error", again: "graded"}
    assert hosts.leftovers() == []


def test_a_session_that_is_killed_is_resumed_from_elsewhere_without_losing_a_second(
    hosts: HostMachines, agent: str, start: Start, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    hosts.waiting_agent(elsewhere)
    option = hosts.write_toml(tmp_path / "hosts.toml")
    session = start(agent, option, *TWO)
    running = session.wait_for_running(2)
    began = {name: session.records()[name]["timings"]["running"] for name in running}
    session.process.kill()
    session.process.wait()
    runs = f"--mle-runs-dir={tmp_path / 'mle-runs'}"
    again = start(agent, option, runs, folder=elsewhere)
    again.wait_for_text("is here")
    hosts.let_go()
    assert again.end() == 0, again.text
    assert phases(session) == dict.fromkeys(running, "graded")
    assert {n: r["timings"]["running"] for n, r in session.records().items()} == began
    assert hosts.leftovers() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_everything_on_every_host_and_says_so(
    hosts: HostMachines, agent: str, start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    session = start(agent, hosts.write_toml(tmp_path / "hosts.toml"), *TWO)
    session.wait_for_running(2)
    session.process.send_signal(number)
    assert session.end() == pytest.ExitCode.INTERRUPTED
    assert "mle-bench: everything has ended on h1, h2, h3" in session.text
    assert wait_until(lambda: hosts.leftovers() == [], 60), hosts.leftovers()


def test_when_all_hosts_are_gone_the_session_ends_with_a_line_that_resumes_it(
    hosts: HostMachines, agent: str, start: Start, tmp_path: Path
) -> None:
    option = hosts.write_toml(tmp_path / "hosts.toml")
    session = start(agent, option, TWO[0], "--mle-grace=6s")
    session.wait_for_running(1)
    for name in hosts.names:
        hosts.do("kill", name)
    assert session.end() == pytest.ExitCode.TESTS_FAILED, session.text
    assert "mle-bench: no host can be reached: waiting for another " in session.text
    assert "mle-bench: no host is left: the session ends" in session.text
    assert "missed: nothing ran" in session.text or "were not run" in session.text
    assert f"--mle-hosts={tmp_path / 'hosts.toml'} --mle-run=r (resumes)" in session.text
    for name in hosts.names:
        hosts.do("back", name)
    hosts.let_go()
    again = start(agent, option, log="again")
    assert again.end() == 0, again.text


def test_a_resumed_session_learns_from_a_host_that_its_attempt_is_gone(
    hosts: HostMachines, agent: str, start: Start, tmp_path: Path
) -> None:
    option = hosts.write_toml(tmp_path / "hosts.toml")
    session = start(agent, option, TWO[0])
    ((name, machine),) = session.wait_for_running(1).items()
    session.process.kill()
    session.process.wait()
    hosts.do("kill", machine)
    hosts.do("back", machine)
    hosts.let_go()
    again = start(agent, option, log="again")
    assert again.end() == 0, again.text
    assert phases(again) == {name: "error", name.replace("attempt1", "attempt2"): "graded"}
    assert hosts.leftovers() == []
