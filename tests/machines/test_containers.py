"""Agents in containers on hosts with an engine each; only the controller has the image."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from docker_images import BUSYBOX, ensure_busybox
from host_engines import HostEngine
from host_machines import TWO, HostMachines, RunningSession
from sandbox_job import wait_until

from pytest_mlebench.errors import ConfigError
from pytest_mlebench.sandbox.docker import Engine

pytestmark = [pytest.mark.slow, pytest.mark.docker]

Start = Callable[..., RunningSession]

# an agent of a shell alone: it waits until the test lets it go on, as the one of Python does
COMMAND = """echo hello; while true; do for address in {addresses}; do
echo $COMPETITION_ID | nc -w 5 $address {port} 2>/dev/null | grep -q go && break 2; done; sleep 0.2
done; cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv"""


@pytest.fixture(scope="module")
def image() -> str:
    """The id of an image that is on the engine of the controller."""
    try:
        engine = Engine()
    except ConfigError as problem:
        if os.environ.get("MLEBENCH_REQUIRE_ENGINE"):
            pytest.fail(f"MLEBENCH_REQUIRE_ENGINE is set, but: {problem}")
        pytest.skip(str(problem))
    ensure_busybox(engine.api)
    found: str = engine.api.inspect_image(BUSYBOX)["Id"]
    engine.close()
    return found


@pytest.fixture(scope="module")
def docked(image: str, three_hosts: HostMachines) -> Iterator[HostMachines]:
    """Three hosts of their own; that the others could be made says that these can."""
    assert three_hosts.names
    assert image
    hosts = HostMachines(3)
    yield hosts
    hosts.down()


@pytest.fixture(scope="module")
def engines(docked: HostMachines) -> Iterator[dict[str, HostEngine]]:
    """An engine on each of the hosts but the last."""
    engines = {name: HostEngine(docked, name) for name in docked.names[:2]}
    yield engines
    for engine in engines.values():
        engine("stop")


@pytest.fixture
def contained(docked: HostMachines, tmp_path: Path) -> str:
    """An agent in a container that waits until it is let go."""
    docked.gate.open.clear()
    addresses = " ".join(f"10.{docked.network}.{name[1:]}.1" for name in docked.names)
    command = COMMAND.format(addresses=addresses, port=docked.gate.port)
    (tmp_path / "contained").mkdir()
    (tmp_path / "contained/agent.toml").write_text(
        f'image = "{BUSYBOX}"\ncommand = ["sh", "-c", {json.dumps(command)}]\n'
    )
    return "--mle-agent=contained"


def test_the_image_is_sent_and_containers_outlive_their_connections(
    docked: HostMachines,
    engines: dict[str, HostEngine],
    image: str,
    contained: str,
    start: Start,
    tmp_path: Path,
) -> None:
    assert not any(engine.has_image(image) for engine in engines.values())
    option = docked.write_toml(tmp_path / "hosts.toml")
    session = start(contained, option, *TWO, "--mle-hosts-missing=warn")
    running = session.wait_for_running(2)
    assert sorted(running.values()) == ["h1", "h2"]
    assert "mle-bench: h3 cannot take part: no container engine answers at " in session.text
    assert all(engine.has_image(image) for engine in engines.values())

    docked.end_connections("h1")
    session.wait_for_text("h1 is lost")
    assert wait_until(lambda: session.text.count("h1 is here") == 2, 120), session.text

    docked.let_go()
    assert session.end() == 0, session.text
    records = session.records()
    assert {name: record["phase"] for name, record in records.items()} == dict.fromkeys(
        running, "graded"
    )
    assert {record["ending"]["image"] for record in records.values()} == {image}
    disclosure = session.report()["disclosure"]
    assert disclosure["image"] == image
    assert sorted(disclosure["hosts"]) == ["h1", "h2"]
    notes = disclosure["notes"]
    assert any(note.startswith("hosts h1, h2: engine: docker ") for note in notes)
    assert any(note.startswith("host h3: no container engine answers at ") for note in notes)
    assert all(engine.containers() == [] for engine in engines.values())
    assert not (session.run / ".image.tar").exists()


def test_no_container_outlives_its_keeper_and_no_item_is_lost_with_an_engine(
    docked: HostMachines,
    engines: dict[str, HostEngine],
    image: str,
    contained: str,
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = f"pytest-mlebench/sent:{image.removeprefix('sha256:')[:20]}"
    settings = tmp_path / "contained/agent.toml"
    settings.write_text(settings.read_text().replace(BUSYBOX, sent))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")  # the first host tells the image
    docked.names.remove("h3")
    session = start(contained, docked.write_toml(tmp_path / "hosts.toml"), *TWO)
    docked.names.append("h3")
    running = session.wait_for_running(2)
    assert {record["identity"]["agent.image"] for record in session.records().values()} == {image}
    assert wait_until(lambda: all(engine.containers() for engine in engines.values()), 120)
    docked.do("cut", "h1")  # nobody can come and clean up
    for pid in keepers(docked, "h1"):
        os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: engines["h1"].containers() == [], 120)
    docked.do("mend", "h1")

    engines["h2"]("restart")
    again = {name.replace("attempt1", "attempt2") for name in running}
    assert wait_until(lambda: again <= session.running().keys(), 240), session.text
    docked.let_go()
    assert session.end() == 0, session.text
    phases = {name: record["phase"] for name, record in session.records().items()}
    assert phases == dict.fromkeys(running, "error") | dict.fromkeys(again, "graded")
    assert all(engine.containers() == [] for engine in engines.values())


def test_an_image_is_built_once_and_runs_on_all_hosts(
    docked: HostMachines, engines: dict[str, HostEngine], image: str, start: Start, tmp_path: Path
) -> None:
    folder = tmp_path / "built"
    folder.mkdir()
    (folder / "Dockerfile").write_text(f"FROM {BUSYBOX}\nRUN echo by-us >/made\n")
    command = "cat /made; cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv"
    (folder / "agent.toml").write_text(f'build = "."\ncommand = ["sh", "-c", "{command}"]\n')
    docked.names.remove("h3")
    option = docked.write_toml(tmp_path / "hosts.toml")
    docked.names.append("h3")
    session = start("--mle-agent=built", option, *TWO)
    assert session.end() == 0, session.text
    (built,) = {record["ending"]["image"] for record in session.records().values()}
    assert built != image
    assert all(engine.has_image(built) for engine in engines.values())
    logs = [path.read_text() for path in session.run.glob("*/seed0/attempt1/run.log")]
    assert logs == ["by-us\n"] * 2


def test_a_host_that_has_another_image_of_that_name_is_refused(
    docked: HostMachines,
    engines: dict[str, HostEngine],
    contained: str,
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = tmp_path / "contained/agent.toml"
    settings.write_text(settings.read_text().replace(BUSYBOX, "same/name:1"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")  # the first host tells the image
    for name, engine in engines.items():  # of one file with the name of the host: two images
        engine.import_file(name, "same/name", "1")
    docked.names.remove("h3")
    option = docked.write_toml(tmp_path / "hosts.toml")
    docked.names.append("h3")
    session = start(contained, option, *TWO)
    assert session.end() == pytest.ExitCode.USAGE_ERROR, session.text
    assert "1 of 2 hosts cannot take part:\n  h2: the image " in session.text
    assert "is not on the engine, cannot be pulled, and was not sent (" in session.text
    assert session.records() == {}


def keepers(hosts: HostMachines, name: str) -> list[int]:
    """Return the keepers of a host; their wardens print to the same log, and lead a session."""
    found = []
    for pid in hosts.pids(name):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/fd/1").readlink().name == ".keeper.log" and os.getsid(pid) != pid:
                found.append(pid)
    return found
